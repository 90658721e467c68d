"""The API's answers as pydantic models, which build themselves from rows and serialise themselves.

/openapi.json is generated from the models, and tests validate every answer against that document. The server does not validate
what the database holds: `Answer.from_row` takes values as they are. The models allow additional fields, as clients must; the tests
do not.

`SerializeAsAny` marks JSON that the database stores in the API's form. The API sends such JSON unchanged.
"""
