package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// hostile is a request, byte for byte.
type hostile struct {
	name    string
	guarded bool // it goes to the site with tokens
	bytes   []byte
}

// hostileRequests returns all of them, always the same. Tokens are only where a token belongs: other places are the client's
// own responsibility.
func hostileRequests(token string) []hostile {
	var all []hostile
	add := func(name, raw string) { all = append(all, hostile{name: name, bytes: []byte(raw)}) }
	both := func(name, method, path, header, body string) {
		add(name, request(method, path, header, body))
		header += "X-Api-Key: " + token + "\r\n"
		if len(all)%4 < 2 {
			header = strings.Replace(header, "X-Api-Key: ", "Authorization: Bearer ", 1)
		}
		all = append(all, hostile{name + ", with a token", true, []byte(request(method, path, header, body))})
	}
	hostilePaths(both)
	hostileBodies(both)
	hostileHeaders(add)
	hostileMutants(add)
	return all
}

func request(method, path, header, body string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%sContent-Length: %d\r\n\r\n%s", method, path, header, len(body), body)
}

func hostilePaths(both func(name, method, path, header, body string)) {
	tricks := []string{
		"../../../../etc/passwd", "..%2f..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/%2e%2e/etc/passwd", "..%5c..%5cboot.ini", "%00", "a%00b", "%c0%ae%c0%ae/etc/passwd",
		"%ff%fe", "%0d%0aX-Injected:%201", "%250d%250aX-Injected:1", ".", "..", "~root", "$HOME", "`id`", "{env.HOME}", "{file./etc/passwd}", "%7Benv.HOME%7D",
		"a;b", "a@b@c", "a:999999999999999999999", "job_../../x", "%2Fetc%2Fpasswd", "-rf", "'%20OR%201=1--", "%F0%9F%92%A9", "con", strings.Repeat("a", 8000),
		strings.Repeat("a/", 3000), strings.Repeat("%2e%2e%2f", 500),
	}
	for _, route := range []struct{ method, path string }{
		{"GET", "/v1/models/%s"},
		{"GET", "/api/v0/models/%s"},
		{"DELETE", "/api/v1/models/%s"},
		{"GET", "/api/v1/models/download/status/%s"},
		{"GET", "/api/v1/models/download/%s/events"},
		{"POST", "/api/v1/models/download/%s/cancel"},
		{"GET", "/api/v1/responses/%s"},
		{"DELETE", "/api/v1/responses/%s"},
		{"DELETE", "/api/v1/tokens/%s"},
		{"PATCH", "/api/v1/tokens/%s"},
		{"GET", "/%s"},
		{"GET", "/v1/../%s"},
	} {
		for _, trick := range tricks {
			body := ""
			if route.method == "PATCH" {
				body = `{"name":"x"}`
			}
			both(fmt.Sprintf("%s %.60s", route.method, fmt.Sprintf(route.path, trick)), route.method, fmt.Sprintf(route.path, trick), "", body)
		}
	}
}

func hostileBodies(both func(name, method, path, header, body string)) {
	deep := strings.Repeat("[", 100_000)
	values := []string{
		`"../../../../etc/passwd"`, `"\u0000"`, `"\ud800"`, "\"\x01\"", "\"\xff\"", `"\r\nX-Injected: 1"`, `"` + strings.Repeat("a", 100_000) + `"`, `"/etc/passwd"`,
		`"file:///etc/passwd"`, `"http://127.0.0.1:1/a/b"`, deep, deep + strings.Repeat("]", 100_000), strings.Repeat(`{"a":`, 50_000), `1e999`, `-1e999`,
		`99999999999999999999999999`, `-0`, `1e-400`, `9223372036854775808`, `NaN`, `Infinity`, `0x10`, `01`, `null`, `true`, `{}`, `[]`, `[[]]`, `{"":""}`, `"`, `\`,
		`/*x*/1`, `'a'`, "\ufeff1", `["` + strings.Repeat(`","`, 20_000) + `"]`,
	}
	for path, fields := range map[string][]string{
		harness.ChatPath: {"model", "messages", "max_tokens", "n", "seed", "tools", "response_format", "ttl", "stream_options"}, "/v1/completions": {"prompt", "logprobs", "best_of"},
		"/v1/embeddings": {"input", "dimensions"}, "/v1/messages": {"messages", "max_tokens", "thinking"}, "/v1/rerank": {"documents"},
		"/api/v1/chat": {"input", "previous_response_id", "context_length", "integrations"}, harness.LoadPath: {"model", "context_length"},
		harness.UnloadPath: {"instance_id"}, "/api/v1/models/download": {"model", "quantization"}, "/api/v1/tokens": {"name", "scopes", "expires_at", "limits"},
	} {
		for _, field := range fields {
			for i, value := range values {
				rest := map[string]string{"model": `"` + harness.Model + `"`, "max_tokens": "1", "messages": `[{"role":"user","content":"hi"}]`, "prompt": `"x"`, "input": `"x"`, "name": `"x"`}
				if path == harness.LoadPath || path == "/api/v1/models/download" || path == "/api/v1/tokens" || path == harness.UnloadPath {
					rest = map[string]string{"name": `"x"`}
				}
				if path == "/api/v1/chat" {
					delete(rest, "messages")
					rest["max_output_tokens"] = "1"
				}
				delete(rest, field)
				body := `{"` + field + `":` + value
				for _, name := range []string{"model", "max_tokens", "max_output_tokens", "messages", "prompt", "input", "name"} {
					if v, ok := rest[name]; ok {
						body += `,"` + name + `":` + v
					}
				}
				both(fmt.Sprintf("%s %s %d", path, field, i), "POST", path, "Content-Type: application/json\r\n", body+"}")
			}
		}
	}
}

func gzipBomb() string {
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	zeros := make([]byte, 1<<20)
	for range 256 {
		_, _ = w.Write(zeros)
	}
	_ = w.Close()
	return bomb.String()
}

func hostileHeaders(add func(name, raw string)) {
	const body = `{"model":"` + harness.Model + `","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}`
	bomb := gzipBomb()
	for name, header := range map[string]string{
		"bare CR": "X-Request-Id: a\rX-Injected: 1\r\n", "folded": "X-Request-Id: a\r\n X-Injected: 1\r\n", "bare LF": "X-Request-Id: a\nX-Injected: 1\r\n", "NUL": "X-A: \x00\r\n",
		"no name": ": x\r\n", "space in a name": "X A: 1\r\n", "two lengths": "Content-Length: 5\r\n", "minus": "Content-Length: -1\r\n", "both": "Transfer-Encoding: chunked\r\n",
		"chunked twice": "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "unknown coding": "Transfer-Encoding: gzip\r\n", "tab": "Transfer-Encoding:\tchunked\r\n",
		"two hosts": "Host: a.example\r\n", "origin": "Origin: https://evil.example\r\n", "null origin": "Origin: null\r\n", "long origin": "Origin: https://" + strings.Repeat("a", 5000) + "\r\n",
		"large": "X-A: " + strings.Repeat("a", 2<<20) + "\r\n", "many": strings.Repeat("X-A: a\r\n", 20_000), "long id": "X-Request-Id: " + strings.Repeat("a", 5000) + "\r\n",
		"expect": "Expect: the-unexpected\r\n", "upgrade": "Connection: upgrade\r\nUpgrade: websocket\r\n", "h2c": "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n",
		"br": "Content-Encoding: br\r\n", "gzip": "Content-Encoding: gzip\r\n", "zstd": "Content-Encoding: zstd\r\n", "twice coded": "Content-Encoding: gzip, gzip\r\n",
		"type": "Content-Type: multipart/form-data; boundary=x\r\n", "no type": "Content-Type: \r\n", "xml": "Content-Type: text/xml\r\n", "range": "Range: bytes=-1\r\n",
		"bearer": "Authorization: Bearer " + strings.Repeat("a", 100_000) + "\r\n", "basic": "Authorization: Basic !!!\r\n", "key": "X-Api-Key: \xff\xfe\r\n", "empty": "Authorization:\r\n",
		"forwarded": "X-Forwarded-For: " + strings.Repeat("1.1.1.1, ", 1000) + "\r\nForwarded: for=\"[\"\r\n", "cookie": "Cookie: " + strings.Repeat("a=b; ", 2000) + "\r\n",
		"version": "Anthropic-Version: \"\r\n", "override": "X-HTTP-Method-Override: DELETE\r\nX-Original-URL: /api/v1/tokens\r\n",
	} {
		for _, path := range []string{harness.ChatPath, "/v1/messages", harness.UnloadPath, "/v1/models"} {
			add(name+" to "+path, request("POST", path, header, body))
		}
	}
	for name, encoding := range map[string]string{"gzip bomb": "gzip", "x-gzip bomb": "x-gzip"} {
		add(name, request("POST", harness.ChatPath, "Content-Encoding: "+encoding+"\r\n", bomb))
	}
	for _, method := range []string{"BREW", "get", "POST ", "TRACE", "CONNECT", "OPTIONS", "PROPFIND", "HEAD", "PUT", strings.Repeat("A", 10_000), "G\x00T", ""} {
		for _, target := range []string{"/v1/models", "*", "http://other.example/v1/models", "//v1/models", "/v1/models?" + strings.Repeat("a=b&", 5000), "v1", "/%"} {
			add(fmt.Sprintf("%.20q %.40s", method, target), method+" "+target+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		}
	}
	for name, raw := range map[string]string{
		"HTTP/1.0": "POST " + harness.ChatPath + " HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}", "HTTP/0.9": "GET /v1/models\r\n", "HTTP/9.9": "GET / HTTP/9.9\r\nHost: a\r\n\r\n",
		"HTTP/2's preface": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", "TLS": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "nothing": "", "zeros": strings.Repeat("\x00", 5000),
		"no host": "GET /v1/models HTTP/1.1\r\n\r\n", "a bad host": "GET /v1/models HTTP/1.1\r\nHost: a b\r\n\r\n", "half a header": "GET /v1/models HTTP/1.1\r\nHost: local", "SSH": "SSH-2.0-OpenSSH_9.9\r\n",
		"half a body": request("POST", harness.ChatPath, "", body)[:150], "more than it says": "POST /v1/models HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n" + body + body,
		"pipelined": strings.Repeat("GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n", 50), "lone slash": "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
	} {
		add(name, raw)
	}
	for i, chunks := range []string{
		"zz\r\n{}\r\n0\r\n\r\n", "ffffffffffffffffff\r\n{}", "2;" + strings.Repeat("a", 10_000) + "\r\n{}\r\n0\r\n\r\n", "5\r\n{}\r\n0\r\n\r\n", "-2\r\n{}\r\n0\r\n\r\n", "2\r\n{}", "2\r\n{}0\r\n\r\n",
		"0\r\nX-Injected: 1\r\n\r\n", "0x2\r\n{}\r\n0\r\n\r\n", strings.Repeat("1\r\n \r\n", 20_000) + "0\r\n\r\n", "2\n{}\n0\n\n", "7fffffff\r\n{}",
	} {
		add(fmt.Sprint("chunks ", i), "POST "+harness.ChatPath+" HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"+chunks)
	}
}

// hostileMutants are honest requests with a few bytes changed, lost, repeated or swapped.
func hostileMutants(add func(name, raw string)) {
	random := rand.New(rand.NewPCG(7, 1234)) // they should be the same each time
	honest := []string{
		request("POST", harness.ChatPath, "Content-Type: application/json\r\n", `{"model":"`+harness.Model+`","stream":true,"max_tokens":2,"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]}`),
		request("POST", "/v1/messages", "Anthropic-Version: 2023-06-01\r\n", `{"model":"`+harness.Model+`","max_tokens":2,"system":[{"type":"text","text":"x"}],"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`),
		request("POST", "/api/v1/chat", "", `{"model":"`+harness.Model+`","input":[{"type":"message","content":"hi"}],"max_output_tokens":2,"stream":true,"store":false}`),
		request("POST", "/v1/completions", "", `{"model":"`+harness.Model+`","prompt":["x",[5,6]],"max_tokens":1,"logprobs":1}`),
		request("GET", "/v1/models?limit=1&after_id=x", "Anthropic-Version: 2023-06-01\r\nOrigin: http://localhost\r\n", ""),
	}
	for i := range 400 {
		raw := []byte(honest[i%len(honest)])
		for range 1 + random.IntN(4) {
			at := random.IntN(len(raw))
			switch random.IntN(4) {
			case 0:
				raw[at] = byte(random.IntN(256))
			case 1:
				raw = append(raw[:at:at], raw[min(len(raw), at+1+random.IntN(8)):]...)
			case 2:
				raw = append(raw[:at:at], append(bytes.Clone(raw[at:min(len(raw), at+20)]), raw[at:]...)...)
			default:
				other := random.IntN(len(raw))
				raw[at], raw[other] = raw[other], raw[at]
			}
			if len(raw) == 0 {
				raw = []byte{0}
			}
		}
		add(fmt.Sprint("mutant ", i), string(raw))
	}
}
