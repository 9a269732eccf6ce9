package caddymodule

import (
	"context"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/tidwall/gjson"
)

// TestWebSocket: a WebSocket passes what Caddy puts around a handler, and ends with the configuration, which doesn't wait for it.
func TestWebSocket(t *testing.T) {
	client, stop := runSite(t, nil, "metrics", "encode gzip\nlog\nlm_api")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "http://127.0.0.1/v1/responses", &websocket.DialOptions{HTTPClient: client})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(-1)
	if err := conn.Write(ctx, websocket.MessageText, []byte(`{"type":"response.create","model":"test/one","input":"hi"}`)); err != nil {
		t.Fatal(err)
	}
	for event := ""; event != "response.completed"; {
		_, data, err := conn.Read(ctx)
		if err != nil {
			t.Fatalf("after %s: %v", event, err)
		}
		if event = gjson.GetBytes(data, "type").Str; event == "error" || event == "response.failed" {
			t.Fatalf("%s", data)
		}
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop()
	}()
	if _, _, err := conn.Read(ctx); websocket.CloseStatus(err) != websocket.StatusServiceRestart {
		t.Errorf("%v", err)
	}
	<-stopped
}
