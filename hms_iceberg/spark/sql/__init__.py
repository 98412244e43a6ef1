"""Iceberg's SQL extensions: what `ALTER TABLE` of Spark's own grammar does not say of partition fields, sort order,
identifier fields, branches and tags.

    statement_tokens.py  text cut into tokens
    statement_parser.py  tokens to a statement, if Spark's own parser gave up
    statements.py        the statements, as they cross to the JVM and back
    execution.py         a statement made part of a table
"""
