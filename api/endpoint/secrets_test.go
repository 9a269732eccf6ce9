package endpoint

import (
	"strings"
	"testing"
)

// A request that is refused may have secrets where they don't belong. What a function takes is no secret.
func TestInspect_MasksSecretsInOtherPlaces(t *testing.T) {
	t.Parallel()
	many := `{"tools":[{"headers":{` + strings.Repeat(`"a":"secret",`, mostSecrets) + `"a":"last"}}]}`
	for body, want := range map[string]string{
		many: `"***"`, // each takes a pass over the body
		`{"tools":{"server_url":"https://u:secret@h/secret","headers":{"a":"secret"}}}`:                         `{"tools":{"server_url":"https://h/***","headers":{"a":"***"}}}`,
		`{"tools":[[{"server_url":"https://h/secret","headers":{"a":["secret",{"b":"secret2"}]}}]]}`:            `{"tools":[[{"server_url":"https://h/***","headers":{"a":["***",{"b":"***"}]}}]]}`,
		`{"integrations":[{"Server_URL":"secret","HEADERS":{"A":"secret"},"token":"secret","n":1}]}`:            `{"integrations":[{"Server_URL":"***","HEADERS":{"A":"***"},"token":"***","n":1}]}`,
		`{"mcp_servers":[{"headers":{"A":1},"x":{"apiKey":"secret"}}],"n":1}`:                                   `{"mcp_servers":[{"headers":{"A":1},"x":{"apiKey":"***"}}],"n":1}`,
		`{"tools":[{"type":"function","function":{"name":"f","parameters":{"token":{"type":"string"}}}}]}`:      `{"tools":[{"type":"function","function":{"name":"f","parameters":{"token":{"type":"string"}}}}]}`,
		`{"tools":[{"name":"f","input_schema":{"properties":{"url":{"type":"string"},"key":{"enum":["a"]}}}}]}`: `{"tools":[{"name":"f","input_schema":{"properties":{"url":{"type":"string"},"key":{"enum":["a"]}}}}]}`,
		`{"tools":["secret_free",null,3]}`: `{"tools":["secret_free",null,3]}`,
	} {
		if got := string(withoutSecrets([]byte(body))); got != want {
			t.Errorf("%s\nis %s\nnot %s", body, got, want)
		}
	}
}
