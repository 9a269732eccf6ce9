package api

import (
	_ "embed"
	"net/http"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
)

// openAPI describes the native API, v1. The tests of this package check all that they send and get against it.
//
//go:embed openapi.json
var openAPI []byte

// openAPIDocument is GET /api/v1/openapi.json.
func openAPIDocument(c *endpoint.Call) error {
	c.WriteJSON(http.StatusOK, openAPI)
	return nil
}
