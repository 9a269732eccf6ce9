package mlxlm

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/child"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

//go:embed render.py
var renderProgram string

// Rendering has a program in the environment of the server's Python render chats: the server can't show what it makes of them.
func (p *Process) Rendering(ctx context.Context, s *schedule.Spec, b process.Build, do func(process.Render) error) error {
	path, args := interpreter(b.Path, b.Args)
	if path == "" {
		return errors.New("the Python of the engine's command isn't known")
	}
	words := ""
	c, err := child.Start(child.Options{
		Path: path, Args: append(args, "-u", "-c", renderProgram, s.Model.Path), Env: environment(), Dir: neutralFolder(path),
		Line: func(line string) { words = line },
	})
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, c.Stop)
	answers := bufio.NewReader(io.LimitReader(c.Stdout, maxAnswer))
	err = do(func(messages, tools, arguments json.RawMessage) (string, bool, error) {
		return render(c.Stdin, answers, messages, tools, arguments)
	})
	stop()
	c.Stop()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		return fmt.Errorf("%w; the last words of the engine's Python: %s", err, words)
	}
}

func render(in io.Writer, out *bufio.Reader, messages, tools, arguments json.RawMessage) (prompt string, ok bool, _ error) {
	err := json.NewEncoder(in).Encode(struct {
		Messages  json.RawMessage `json:"messages"`
		Tools     json.RawMessage `json:"tools,omitempty"`
		Arguments json.RawMessage `json:"chat_template_kwargs,omitempty"`
	}{messages, tools, arguments})
	if err != nil {
		return "", false, err
	}
	line, err := out.ReadBytes('\n')
	if err != nil {
		return "", false, err
	}
	var answer struct{ Prompt *string }
	if err := json.Unmarshal(line, &answer); err != nil || answer.Prompt == nil {
		return "", false, err
	}
	return *answer.Prompt, true, nil
}

// interpreter returns the command of the Python that runs a server, or "" if it can't be derived.
func interpreter(path string, args []string) (string, []string) {
	if i := slices.Index(args, "-m"); i >= 0 && i+1 < len(args) && strings.HasPrefix(args[i+1], "mlx_lm") {
		return path, slices.Clone(args[:i])
	}
	if !strings.HasPrefix(filepath.Base(path), "mlx_lm") {
		return "", nil
	}
	folders := []string{filepath.Dir(path)}
	if real, err := filepath.EvalSymlinks(path); err == nil && strings.HasPrefix(filepath.Base(real), "mlx_lm") {
		folders = []string{filepath.Dir(real), folders[0]} // of an environment whose scripts are linked from a folder on PATH
	}
	for _, folder := range folders {
		python := filepath.Join(folder, "python3")
		if _, err := os.Stat(python); err == nil {
			return python, nil
		}
	}
	return "", nil
}
