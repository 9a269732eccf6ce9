package caddymodule

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/lmcaddy/lmcaddy/internal/logs"
)

// What Caddy logs is kept above debug level, without requests and their headers, and goes on as before.
func TestRecorded(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	core := zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{MessageKey: "msg"}), zapcore.AddSync(&text), zap.WarnLevel)
	log := zap.New(Recorded(core)).Named("admin").With(zap.String("model", "recorded-test"))
	header := zapcore.ObjectMarshalerFunc(func(e zapcore.ObjectEncoder) error {
		e.AddString("X-Api-Key", "very secret")
		return nil
	})
	log.Debug("no")
	log.Info("yes", zap.Object("request", header), zap.Any("headers", map[string]string{"X-Api-Key": "very secret"}), zap.Duration("took", time.Second))
	log.Warn("both", zap.Strings("names", []string{"a"}))
	log.With(zap.String("with", "hf_abcdefghijkl")).Warn("api_key=abcdefgh", zap.Error(errors.New("at http://ann:abcdefgh@h/")), zap.Strings("args", []string{"--api-key=abcdefgh", "b"}), zap.Int("n", 1))
	got := recent.Last(9, logs.Filter{Level: -4, Models: []string{"recorded-test"}})
	var said []string
	for _, r := range got {
		said = append(said, r.Level.String()+" "+r.Logger+" "+r.Message+" "+string(r.Fields))
	}
	want := `INFO admin yes {"model":"recorded-test","took":"1s"}` + "\n" + `WARN admin both {"model":"recorded-test","names":["a"]}` + "\n" +
		`WARN admin api_key=… {"model":"recorded-test","with":"hf_…","error":"at http://ann:…@h/","args":["--api-key=…","b"],"n":1}`
	if got := strings.Join(said, "\n"); got != want {
		t.Errorf("%s", got)
	}
	if got := text.String(); strings.Contains(got, "yes") || !strings.Contains(got, `"msg":"both","model":"recorded-test","names":["a"]`) {
		t.Errorf("the other log has %s", got)
	}
	if got := text.String(); !strings.Contains(got, `"msg":"api_key=…","model":"recorded-test","with":"hf_…","error":"at http://ann:…@h/","args":["--api-key=…","b"],"n":1`) {
		t.Errorf("the other log has %s", got)
	}
}
