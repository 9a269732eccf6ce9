package mlxlm

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/child"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

const (
	// askTimeout bounds how long a command may take to answer. Importing mlx_lm takes seconds, and longer from a cold disk; without an
	// answer the server is started all the same.
	askTimeout = 10 * time.Second
	// maxAnswer bounds its answer, in bytes.
	maxAnswer = 1 << 20
)

var errSlow = errors.New("it didn't answer in time")

// ask runs a command and returns what it prints on standard output. A command that doesn't know what it is asked may do anything,
// such as start to serve: then it is ended after a while.
func ask(ctx context.Context, timeout time.Duration, path string, args []string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errSlow)
	defer cancel()
	c, err := child.Start(child.Options{Path: path, Args: args, Env: environment(), Dir: neutralFolder(path)})
	if err != nil {
		return "", err
	}
	defer c.Stop()
	_ = c.Stdin.Close()
	defer context.AfterFunc(ctx, c.Stop)()
	out, err := io.ReadAll(io.LimitReader(c.Stdout, maxAnswer))
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", err
	}
	c.Stop() // it may have closed its output without ending
	return string(out), c.Err()
}

// neutralFolder returns the working directory for a question. Python looks for modules there first, so only the system's
// administrator may have put any there.
func neutralFolder(path string) string { return filepath.VolumeName(path) + string(os.PathSeparator) }

var (
	// flagName matches a flag in argparse's help.
	flagName    = regexp.MustCompile(`(?:^|[\s\[])(--[a-z][a-z0-9-]*)`)
	versionLine = regexp.MustCompile(`(?m)^\d+\.\d+[\w.+]*\s*$`)
	// packageFolder matches the folder in which pip describes a package. Its submatch is the version.
	packageFolder = regexp.MustCompile(`^mlx_lm-(\d[\w.+!]*)\.dist-info$`)
)

// installedVersion returns the version of the package beside an executable of a Python environment, or "".
func installedVersion(path string) string {
	paths := []string{path}
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		paths = append(paths, real)
	}
	for _, path := range paths {
		root := filepath.Dir(filepath.Dir(path))
		for _, packages := range []string{"lib/python3*/site-packages", "lib/python3*/dist-packages", "Lib/site-packages"} {
			found, _ := fs.Glob(os.DirFS(root), packages+"/mlx_lm-*.dist-info")
			for _, folder := range slices.Backward(found) {
				if m := packageFolder.FindStringSubmatch(filepath.Base(folder)); m != nil {
					return m[1]
				}
			}
		}
	}
	return ""
}

// versionCommand returns the command that prints the version of the package whose server a command starts, or "" if it can't be derived.
func versionCommand(path string, args []string) (string, []string) {
	const server, version = "server", "--version"
	n := len(args)
	switch base := strings.TrimSuffix(filepath.Base(path), ".exe"); {
	case base == "mlx_lm.server" && n == 0:
		sibling := filepath.Join(filepath.Dir(path), strings.Replace(filepath.Base(path), "mlx_lm.server", "mlx_lm", 1))
		if _, err := os.Stat(sibling); err == nil {
			return sibling, []string{version}
		}
		return "", nil
	case n > 0 && args[n-1] == server && (base == "mlx_lm" || slices.Contains(args, "mlx_lm")):
		return path, append(slices.Clone(args[:n-1]), version)
	case n > 1 && args[n-1] == "mlx_lm.server" && args[n-2] == "-m":
		return path, append(slices.Clone(args[:n-1]), "mlx_lm", version)
	default:
		return "", nil
	}
}

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
