"""Who needs a file: what a table names itself, what its neighbours in the metastore name, and what a way back needs.

Everything that deletes files of tables asks here first.
"""
