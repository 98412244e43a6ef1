"""Files written anew: compaction of data files, and of their deletes.

A plan is made from metadata alone and can be looked at; an engine writes one group of files after the other, and each
group that is done is committed by the ordinary updates.
"""
