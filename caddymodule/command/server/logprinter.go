package server

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// logPrinter prints records of the log as lines for people.
type logPrinter struct {
	out    io.Writer
	colour bool
	now    func() time.Time
}

// levelColours are what a terminal shows of a level's records in another colour.
var levelColours = map[string]string{"debug": terminal.Dim, "warn": "\x1b[33m", "error": "\x1b[31m"}

// show prints a record: its time, level, model, message and fields.
func (p *logPrinter) show(r resource.LogRecord) error {
	var line bytes.Buffer
	begin, end := "", ""
	if p.colour {
		if begin = levelColours[r.Level]; begin != "" {
			end = terminal.Plain
		}
	}
	fmt.Fprintf(&line, "%s %s%-5s%s ", p.time(r.Time), begin, strings.ToUpper(r.Level), end)
	fields := gjson.ParseBytes(r.Fields)
	if about := cmp.Or(fields.Get("instance").Str, fields.Get("model").Str); about != "" {
		line.WriteString(shown(about) + "  ")
	}
	output := fields.Get("line")
	message := shown(r.Message)
	if output.Exists() {
		message += ": " + terminal.Line(output.Str)
	}
	if r.Level == "debug" {
		message = begin + message + end
	}
	line.WriteString(message)
	fields.ForEach(func(name, value gjson.Result) bool {
		switch name.Str {
		case "instance", "line", "part":
			return true
		case "model":
			if fields.Get("instance").Str == "" {
				return true
			}
		}
		text := value.Raw
		if value.Type == gjson.String {
			text = shown(value.Str)
			if text == "" || strings.ContainsAny(text, " \t=") {
				text = strconv.Quote(value.Str)
			}
		}
		line.WriteString("  " + shown(name.Str) + "=" + text)
		return true
	})
	line.WriteByte('\n')
	_, err := p.out.Write(line.Bytes())
	return err
}

// time is the time of the day, with the date unless it is today's.
func (p *logPrinter) time(at *resource.Time) string {
	if at == nil {
		return "--:--:--"
	}
	local := at.Local()
	if local.Format(time.DateOnly) == p.now().Local().Format(time.DateOnly) {
		return local.Format("15:04:05.000")
	}
	return local.Format("2006-01-02 15:04:05.000")
}

// shown is a text on one line; one with characters that could control a terminal is quoted.
func shown(text string) string {
	if terminal.Line(text) == text {
		return text
	}
	return strconv.Quote(text)
}
