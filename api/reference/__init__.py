"""The API's reference: the OpenAPI document, generated from the routes and their models, and the page that shows it."""
