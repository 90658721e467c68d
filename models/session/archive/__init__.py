"""The archive: old events of a session, with the replies, inputs and results of their time, in encrypted parts.

part      the row of a part, and of a content in the database
files     contents in a folder, in S3, or wherever else fsspec has a driver
contents  stores, reads and removes a content; says what is wrong with one
reading   rows that are in parts
"""
