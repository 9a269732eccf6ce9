package api

import (
	_ "embed"
	"net/http"
)

// openAPI describes the native API, v1. The tests of this package check all that they send and get against it.
//
//go:embed openapi.json
var openAPI []byte

// describe is GET /api/v1/openapi.json.
func (c *call) describe() error {
	c.writeJSON(http.StatusOK, openAPI)
	return nil
}
