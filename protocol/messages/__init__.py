"""One declaration file per API, request and response together."""
