package api

import "embed"

//go:embed weft.swagger.json
var documents embed.FS

// OpenAPI returns the description of the methods as they appear over HTTP: a
// document of OpenAPI 2.0 in JSON, generated from the .proto files and
// http.yaml.
func OpenAPI() ([]byte, error) { return documents.ReadFile("weft.swagger.json") }
