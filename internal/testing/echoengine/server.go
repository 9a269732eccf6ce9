package echoengine

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
)

// server is what runs in the engine's process.
type server struct {
	context  int // words
	greeting string
}

// prompt is a request to the server.
type prompt struct {
	said     string // by the user, last
	words    int    // of all messages
	tools    []string
	mustCall bool
	limit    int // words of the answer; 0: none
	inputs   []string
}

func readPrompt(r io.Reader) (p prompt, err error) {
	text, err := io.ReadAll(r)
	for text := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(text, "\n"), ": ")
		value = unescaper.Replace(value)
		switch key {
		case "may call":
			p.tools = append(p.tools, value)
		case "must call":
			p.mustCall = true
		case "limit":
			_, err = fmt.Sscan(value, &p.limit)
		case "measure":
			p.inputs = append(p.inputs, value)
		case "user":
			p.said = value
			fallthrough
		default:
			p.words += len(strings.Fields(value))
		}
	}
	return p, err
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, status int, format string, args ...any) {
	w.WriteHeader(status)
	fmt.Fprintf(w, format+"\n", args...)
}

func (s *server) generate(w http.ResponseWriter, r *http.Request) {
	p, err := readPrompt(r.Body)
	if err != nil {
		refuse(w, http.StatusTeapot, "%v", err)
		return
	}
	if p.words > s.context {
		refuse(w, http.StatusRequestEntityTooLarge, tooLong, p.words, s.context)
		return
	}
	v := &voice{w: w, limit: p.limit}
	if why, ok := strings.CutPrefix(p.said, "refuse "); ok {
		refuse(w, http.StatusTeapot, "%s", why)
		return
	}
	if why, ok := strings.CutPrefix(p.said, "fail "); ok {
		refuse(w, http.StatusInternalServerError, "%s", why)
		return
	}
	v.tell(line{Heard: p.words})
	if s.greeting != "" {
		v.say(s.greeting + " ")
	}
	s.answer(v, &p)
	switch {
	case v.isOver():
		v.tell(line{Done: "limit", Out: v.words})
	default:
		v.tell(line{Done: "end", Out: v.words})
	}
}

// answer does what the user's lines say. Calls that follow each other are interleaved.
func (s *server) answer(v *voice, p *prompt) {
	if p.mustCall && !strings.HasPrefix(p.said, "call ") {
		v.call(call{p.tools[0], `{"said":` + quote(p.said) + `}`})
		return
	}
	var calls []call
	for text := range strings.Lines(p.said) {
		in := instructionOf(strings.TrimSuffix(text, "\n"))
		if in.word == "call" {
			name, args, _ := strings.Cut(in.rest, " ")
			calls = append(calls, call{name, args})
			continue
		}
		in.do(v)
	}
	v.call(calls...)
}

// instruction is a line of the user's: a word that is known, and what it is about. Other lines are echoed.
//
//	think <text>         think it
//	call <tool> <JSON>   call a tool with arguments, which may be missing
//	die                  end the process
//	babble               say what is no JSON
//	despair <reason>     say that the answer can't be completed
type instruction struct{ word, rest string }

func instructionOf(text string) instruction {
	word, rest, _ := strings.Cut(text, " ")
	if slices.Contains([]string{"think", "call", "die", "babble", "despair"}, word) {
		return instruction{word, rest}
	}
	return instruction{rest: text}
}

func (in instruction) do(v *voice) {
	switch in.word {
	case "think":
		for word := range strings.SplitAfterSeq(in.rest, " ") {
			v.put(line{Think: word})
		}
	case "die":
		syscall.Exit(9)
	case "babble":
		_, _ = io.WriteString(v.w, "bla bla\n")
	case "despair":
		v.tell(line{Done: "trouble", Why: in.rest})
	default:
		v.say(in.rest)
	}
}

// measure answers with two numbers for each text: its words and its bytes.
func (s *server) measure(w http.ResponseWriter, r *http.Request) {
	p, err := readPrompt(r.Body)
	if err != nil {
		refuse(w, http.StatusTeapot, "%v", err)
		return
	}
	var m measured
	for _, text := range p.inputs {
		words := len(strings.Fields(text))
		if words > s.context {
			refuse(w, http.StatusRequestEntityTooLarge, tooLong, words, s.context)
			return
		}
		m.Vectors = append(m.Vectors, []float32{float32(words), float32(len(text))})
		m.In += words
	}
	_ = json.NewEncoder(w).Encode(m)
}

func quote(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}
