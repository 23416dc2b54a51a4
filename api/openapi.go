package api

import _ "embed" // for OpenAPI

// OpenAPI describes the methods as they appear over HTTP: a document of
// OpenAPI 2.0 in JSON, generated from the .proto files and http.yaml.
//
//go:embed weft.swagger.json
var OpenAPI []byte
