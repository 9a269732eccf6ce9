package runtimes

import "strings"

// Attempt is a failed attempt to get an engine from a source.
type Attempt struct {
	What string
	Err  error
}

// GetError says what was tried to get an engine, why each attempt failed, and how to install an engine by hand.
type GetError struct {
	Engine string
	Tried  []Attempt
}

const llamaByHand = `To install it by hand:
  macOS           brew install llama.cpp
  Windows         winget install llama.cpp
  Debian testing  apt install llama.cpp-tools
  Nix             nix profile install nixpkgs#llama-cpp
  elsewhere       unpack an archive from https://github.com/ggml-org/llama.cpp/releases
Then put llama-server on PATH, or name it in the Caddyfile:
  engine llama_server { path /where/it/is/llama-server }`

const mlxByHand = `To install it by hand:
  python3 -m venv ~/mlx && ~/mlx/bin/pip install mlx-lm
Then name it in the Caddyfile, or put mlx_lm.server on PATH:
  engine mlx_lm { command /where/your/home/is/mlx/bin/mlx_lm.server }`

func (e *GetError) Error() string {
	var text strings.Builder
	text.WriteString(e.Engine + " could not be got.\n")
	for _, attempt := range e.Tried {
		reason := strings.ReplaceAll(attempt.Err.Error(), "\n", "; ") // one line for each
		text.WriteString("  " + attempt.What + ": " + reason + "\n")
	}
	if e.Engine == MLXLM {
		return text.String() + mlxByHand
	}
	return text.String() + llamaByHand
}

// Unwrap returns the errors of all attempts.
func (e *GetError) Unwrap() []error {
	errs := make([]error, len(e.Tried))
	for i, attempt := range e.Tried {
		errs[i] = attempt.Err
	}
	return errs
}
