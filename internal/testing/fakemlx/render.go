package fakemlx

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

// render is the program that renders chats in the real server's environment. It doesn't return. Each line is a chat, and is answered with its
// prompt: the backend's, or else the words of which its tokens are made. A chat for which a rule has a Status is refused.
func (p *process) render(s *Script) {
	if s.HelpHangs {
		p.hang()
	}
	var b *backend
	if s.Backend != nil {
		var err error
		if b, err = s.Backend.start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			p.probed(1)
		}
	}
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			p.probed(0)
		}
		var answer struct {
			Prompt *string `json:"prompt"`
		}
		if prompt, err := prompt(b, line); err == nil && !refuses(s, line) {
			answer.Prompt = &prompt
		}
		text, _ := json.Marshal(answer) // which is a string
		fmt.Println(string(text))
	}
}

func refuses(s *Script, chat []byte) bool {
	for _, r := range s.Rules {
		if r.Status != 0 && bytes.Contains(chat, []byte(r.Contains)) {
			return true
		}
	}
	return false
}

func prompt(b *backend, chat []byte) (string, error) {
	if b != nil {
		return b.prompt(chat)
	}
	q := &ask{chat: true, thinking: true}
	d := json.NewDecoder(bytes.NewReader(chat))
	d.UseNumber()
	if err := d.Decode(&q.body); err != nil {
		return "", fmt.Errorf("a chat that isn't JSON: %w", err)
	}
	if err := q.takePrompt(); err != nil {
		return "", err
	}
	words, err := q.tokens()
	if !q.thinking {
		words = append(words, "<think>", "</think>")
	}
	return strings.Join(words, " "), err
}

// prompt returns what the llama-server's template makes of a chat.
func (b *backend) prompt(chat []byte) (string, error) {
	answer, err := http.Post(b.url+"/apply-template", "application/json", bytes.NewReader(chat))
	if err != nil {
		return "", fmt.Errorf("asking the backend: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", fmt.Errorf("asking the backend: %w", err)
	}
	var made struct{ Prompt *string }
	if err := json.Unmarshal(text, &made); err != nil || made.Prompt == nil {
		return "", fmt.Errorf("the backend refuses a chat: %s", text)
	}
	return *made.Prompt, nil
}
