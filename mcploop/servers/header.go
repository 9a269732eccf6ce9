package servers

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// reserved are the headers that frame a request or belong to the protocol. Nobody but the transport may set them.
var reserved = []string{
	"Accept", "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Host", "Keep-Alive",
	"Last-Event-Id", "Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version", "Mcp-Session-Id", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// checkHeaders refuses headers that can't be sent. The error names the header, never its value.
func checkHeaders(headers map[string]string) error {
	for name, value := range headers {
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			return fmt.Errorf("the header name %q is not valid", clip(name))
		case slices.Contains(reserved, http.CanonicalHeaderKey(name)), strings.HasPrefix(http.CanonicalHeaderKey(name), "Proxy-"):
			return fmt.Errorf("the header %q can't be set: it belongs to the connection", name)
		case !httpguts.ValidHeaderFieldValue(value):
			return fmt.Errorf("the value of the header %q is not valid", name)
		}
	}
	return nil
}

// configHeaders returns the headers of an entry of mcp.json. Accept and Content-Type are left out: examples on the web have them,
// and the protocol sets them anyway.
func configHeaders(headers map[string]string) (map[string]string, error) {
	kept := make(map[string]string, len(headers))
	for name, value := range headers {
		if key := http.CanonicalHeaderKey(name); key != "Accept" && key != "Content-Type" {
			kept[name] = value
		}
	}
	return kept, checkHeaders(kept)
}

// clip shortens a text for a message and leaves out what isn't printable.
func clip(text string) string {
	const most = 128
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return text
}
