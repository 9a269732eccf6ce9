package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// engineName is the name under which the test's binary acts as the engine.
const engineName = "llama-server"

// serveEngine is a llama-server that implements what lmcaddy needs to start, use and stop it. It answers any request with
// fixed bytes, so that its own cost is small and the same for all targets: with a stream, or with one body if it is asked for that.
func serveEngine(args []string) int {
	switch {
	case slices.Contains(args, "--version"):
		fmt.Println("version: 0.7.0 (build 11669, commit bench)")
		return 0
	case slices.Contains(args, "--help"):
		fmt.Println("-m,    --model FNAME\n--no-ui\n--offline")
		return 0
	}
	port := slices.Index(args, "--port") + 1
	if port == 0 || port == len(args) {
		fmt.Fprintln(os.Stderr, "error: --port is missing")
		return 1
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+args[port])
	if err != nil {
		fmt.Fprintln(os.Stderr, "couldn't bind HTTP server socket:", err)
		return 1
	}
	server := &http.Server{Handler: http.HandlerFunc(answerChat), ReadHeaderTimeout: time.Minute}
	go func() {
		awaitExit(os.Stdin)
		_ = server.Close()
	}()
	fmt.Println(`cmd_child_to_router:state:{"state":"ready","payload":{}}`)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// awaitExit returns when the engine is told to end, by a line or by the end of its input.
func awaitExit(input io.Reader) {
	for lines := bufio.NewScanner(input); lines.Scan(); {
		if lines.Text() == "cmd_router_to_child:exit" {
			return
		}
	}
}

// applyTemplate answers with the prompt of a chat, in which all texts are, whatever their order.
func applyTemplate(w http.ResponseWriter, body io.Reader) {
	var chat struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if err := json.NewDecoder(body).Decode(&chat); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var prompt strings.Builder
	for _, m := range chat.Messages {
		fmt.Fprintf(&prompt, "<%s>%s\n", m.Role, m.Content)
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"prompt": prompt.String()})
}

// answerChat streams max_tokens events with pauses of seed microseconds: lmcaddy passes on only fields that it knows. If stream is
// false, it answers with the text of as many events in one body.
func answerChat(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet { // a check whether it is up, or what models it has
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"status":"ok","object":"list","data":[{"id":"lmcaddy/tinychat","object":"model","created":1795196661,"owned_by":"llamacpp"}]}`)
		return
	}
	if r.URL.Path == "/apply-template" {
		applyTemplate(w, r.Body)
		return
	}
	head, err := readAll(r.Body)
	events, pause := numberIn(head, `"max_tokens":`), numberIn(head, `"seed":`)
	if err != nil || events < shortest {
		http.Error(w, `{"error":{"code":400,"message":"max_tokens has to be near the beginning","type":"invalid_request_error"}}`, http.StatusBadRequest)
		return
	}
	if isWhole(head) {
		answerWhole(w, events)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	for i := range events {
		if pause > 0 && i > 0 {
			time.Sleep(time.Duration(pause) * time.Microsecond)
		}
		if _, err := w.Write(event(i, events)); err != nil || flush.Flush() != nil {
			return // the client has disconnected
		}
	}
}

// isWhole reports whether a request is for an answer in one body. Ours is asked for streams only.
func isWhole(head []byte) bool {
	_, value, _ := bytes.Cut(head, []byte(`"stream":`))
	return bytes.HasPrefix(bytes.TrimLeft(value, " "), []byte("false"))
}

// answerWhole answers in one body, as llama-server does, with the text that a stream of this number of events has.
func answerWhole(w http.ResponseWriter, events int) {
	body := fmt.Appendf(nil, `{"choices":[{"finish_reason":"stop","index":0,"message":{"role":"assistant","content":"%s"}}],"created":1795196661,`+
		`"model":"lmcaddy/tinychat","system_fingerprint":"b11669-bench","object":"chat.completion"%s,"id":"chatcmpl-BDR7Pa3QhcYUSDPtFMyvmvRzzeUuGXqR"}`,
		strings.Repeat(textPiece, events-shortest), figuresMember)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the client may have disconnected
}

// readAll reads a body to its end, and keeps its beginning.
func readAll(body io.Reader) (head []byte, err error) {
	buf := make([]byte, 4<<10)
	n, err := io.ReadFull(body, buf)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return buf[:n], nil
	}
	if err == nil {
		_, err = io.Copy(io.Discard, body)
	}
	return buf[:n], err
}

func numberIn(text []byte, key string) int {
	_, after, _ := bytes.Cut(text, []byte(key))
	end := bytes.IndexFunc(after, func(c rune) bool { return c < '0' || c > '9' })
	n, _ := strconv.Atoi(string(after[:max(end, 0)]))
	return n
}

// The events of a stream as llama-server sends them: the role, the text in pieces, the finish reason, the usage and the end
// marker.
var (
	roleEvent   = streamEvent(`[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}]`, "")
	textEvent   = streamEvent(`[{"finish_reason":null,"index":0,"delta":{"content":"`+textPiece+`"}}]`, "")
	finishEvent = streamEvent(`[{"finish_reason":"stop","index":0,"delta":{}}]`, "")
	usageEvent  = streamEvent(`[]`, figuresMember)
	lastEvent   = []byte("data: [DONE]\n\n")
)

// The text of an event, and the figures at the end of an answer.
const (
	textPiece     = " token"
	figuresMember = `,"usage":{"completion_tokens":8,"prompt_tokens":13,"total_tokens":21,"prompt_tokens_details":{"cached_tokens":0}},` +
		`"timings":{"cache_n":0,"prompt_n":13,"prompt_ms":1.987,"prompt_per_token_ms":0.15,"prompt_per_second":6542.5,` +
		`"predicted_n":8,"predicted_ms":2.549,"predicted_per_token_ms":0.364,"predicted_per_second":2746.2}`
)

// shortest is the smallest number of events that a stream can have.
const shortest = 4

func streamEvent(choices, more string) []byte {
	return []byte(`data: {"choices":` + choices + `,"created":1795196661,"id":"chatcmpl-BDR7Pa3QhcYUSDPtFMyvmvRzzeUuGXqR",` +
		`"model":"lmcaddy/tinychat","system_fingerprint":"b11669-bench","object":"chat.completion.chunk"` + more + "}\n\n")
}

func event(i, of int) []byte {
	switch i {
	case 0:
		return roleEvent
	case of - 3:
		return finishEvent
	case of - 2:
		return usageEvent
	case of - 1:
		return lastEvent
	default:
		return textEvent
	}
}
