package server

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit/kittest"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

const recordsOfALog = `{"records":[
	{"id":"a-1-0","time":"2026-01-02T03:04:05.000Z","level":"info","logger":"lm","message":"model loaded","fields":{"part":"supervisor","instance":"a/b","load_time":"1.4s","memory":"2.1 GiB"}},
	{"id":"a-1-1","time":"2026-01-02T03:04:06.000Z","level":"debug","logger":"lm","message":"engine","fields":{"instance":"a/b","line":"srv: \u001b[2J ok"}},
	{"id":"a-2-1","time":"2026-01-02T03:04:07.000Z","level":"warn","logger":"lm","message":"a model file can't be used","fields":{"model":"c/d","n":3,"reason":""}}]}`

func TestLog(t *testing.T) {
	t.Parallel()
	at := func(s string) string {
		parsed, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return parsed.Local().Format("2006-01-02 15:04:05.000")
	}
	want := at("2026-01-02T03:04:05Z") + " INFO  a/b  model loaded  load_time=1.4s  memory=\"2.1 GiB\"\n" +
		at("2026-01-02T03:04:06Z") + " DEBUG a/b  engine: srv: \uFFFD[2J ok\n" +
		at("2026-01-02T03:04:07Z") + " WARN  c/d  a model file can't be used  n=3  reason=\"\"\n"
	const logs = "GET /api/v1/logs"
	answers := map[string]string{logs: recordsOfALog}
	out, _, err := kittest.TalkTo(t, DefineLog, answers)
	kittest.WantTalk(t, want, "", out, err)
	stream := "data: " + `{"id":"a-1-0","time":"2026-01-02T03:04:05.000Z","level":"info","logger":"lm","message":"model loaded","fields":{"instance":"a/b"}}` + "\n\n"
	out, notes, err := kittest.TalkTo(t, DefineLog, map[string]string{logs: stream}, "--follow")
	kittest.WantTalk(t, at("2026-01-02T03:04:05Z")+" INFO  a/b  model loaded\n", "", out, err)
	if notes != "The server has ended.\n" {
		t.Errorf("notes: %q", notes)
	}
	out, _, err = kittest.TalkTo(t, DefineLog, map[string]string{logs: stream}, "--follow", "--json")
	kittest.WantTalk(t, strings.TrimSuffix(strings.TrimPrefix(stream, "data: "), "\n"), "", out, err)
	_, _, err = kittest.TalkTo(t, DefineLog, answers, "--lines", "-3")
	kittest.WantTalk(t, "", "must not be negative", "", err)
}

func TestLogPrinter_Today(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var out bytes.Buffer
	p := &logPrinter{out: &out, colour: true, now: func() time.Time { return now }}
	if err := p.show(resource.LogRecord{Time: resource.At(now), Level: "error", Message: "it failed\nbadly", Fields: []byte(`{"a b":"c d"}`)}); err != nil {
		t.Fatal(err)
	}
	want := now.Local().Format("15:04:05.000") + " \x1b[31mERROR" + terminal.Plain + ` "it failed\nbadly"  a b="c d"` + "\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	const settings = "GET /api/v1/settings"
	full := map[string]string{settings: `{"authentication":true,"configuration":{"file":"/etc/lm/Caddyfile","home":"/srv/lm",
		"settings":[{"name":"idle_ttl","value":"1h","source":"default"},{"name":"jit","value":"off","source":"file"}],
		"engines":[{"name":"llama_server","settings":[{"name":"parallel","value":"2","source":"file"}]}],
		"models":[{"name":"a/b","settings":[{"name":"pin","value":"on","source":"file"}]}],
		"sites":[{"server":"srv0","addresses":["https://:443"],"hosts":["lm.lan"],"tls":true,"authentication":true,"reachable":true,"dialects":["openai"],"cors":[]},
			{"server":"srv1","addresses":["http://127.0.0.1:80"],"page":true}]}}`}
	out, _, err := kittest.TalkTo(t, DefineConfig, full)
	kittest.WantTalk(t, `Caddyfile  /etc/lm/Caddyfile
Home       /srv/lm

Site https://:443
  usable from other machines, with a token
  hosts lm.lan
  dialects openai

Site http://127.0.0.1:80
  usable on this machine, for anybody
  page on

SETTING   VALUE  FROM
idle_ttl  1h     default
jit       off    file

ENGINE llama_server  VALUE  FROM
parallel             2      file

MODEL a/b  VALUE  FROM
pin        on     file
`, "", out, err)
	out, _, err = kittest.TalkTo(t, DefineConfig, full, "--path")
	kittest.WantTalk(t, "/etc/lm/Caddyfile\n", "", out, err)
	_, _, err = kittest.TalkTo(t, DefineConfig, map[string]string{settings: `{"configuration":{"home":"/srv/lm"}}`}, "--path")
	kittest.WantTalk(t, "", "there is no configuration file", "", err)
	_, _, err = kittest.TalkTo(t, DefineConfig, map[string]string{settings: `{"authentication":true}`})
	kittest.WantTalk(t, "", "needs the scope admin", "", err)
	out, _, err = kittest.TalkTo(t, DefineConfig, map[string]string{settings: `{"authentication":true}`}, "--json")
	kittest.WantTalk(t, "{\n  \"authentication\": true\n}\n", "", out, err)
	_, _, err = kittest.TalkTo(t, DefineConfig, full, "--config", "Caddyfile")
	kittest.WantTalk(t, "", "leave out --host", "", err)
}
