package endpoint

import (
	"strconv"

	"github.com/lmcaddy/lmcaddy/translate"
)

// QueryBool is a parameter of the query; false if it isn't given.
func QueryBool(c *Call, name string) (bool, error) {
	given := c.Request.URL.Query().Get(name)
	is, err := strconv.ParseBool(given)
	if err != nil && given != "" {
		return false, translate.Invalid("invalid_type", name, `"`+name+`" must be true or false.`)
	}
	return is, nil
}
