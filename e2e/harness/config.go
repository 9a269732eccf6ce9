package harness

import (
	"cmp"
	"fmt"
	"strings"
)

// Config is a Caddyfile: one plain site on one port. The zero value of each field but Port suits most tests.
type Config struct {
	Port   int
	Bind   string   // the address; default 127.0.0.1
	Grace  string   // the grace period; default 15s
	MLX    []string // the command of mlx_lm.server, which is the engine then; nil: llama-server is
	Engine []string // additional lines of the engine
	LM     []string // additional lines of lm
	Site   []string // additional lines of the site
	API    []string // lines of lm_api
}

// String is the Caddyfile.
func (c Config) String() string {
	return fmt.Sprintf(`{
	grace_period %s
	admin unix/{$LMCADDY_HOME}/run/admin.sock|0600
	lm {
		home {$LMCADDY_HOME}
%s%s	}
}

http://:%d {
	bind %s
%s	lm_api {
%s	}
}
`, cmp.Or(c.Grace, "15s"), lines(2, c.engine()), lines(2, c.LM), c.Port, cmp.Or(c.Bind, "127.0.0.1"), lines(1, c.Site), lines(2, c.API))
}

// engine is the block of the engine.
func (c Config) engine() []string {
	block := []string{"engine llama_server {", "\targs --threads 1"}
	if c.MLX != nil {
		block = []string{"engine mlx_lm {", "\tcommand " + strings.Join(c.MLX, " ")}
	}
	for _, line := range c.Engine {
		block = append(block, "\t"+line)
	}
	return append(block, "}")
}

func lines(indent int, all []string) string {
	var b strings.Builder
	for _, line := range all {
		b.WriteString(strings.Repeat("\t", indent) + line + "\n")
	}
	return b.String()
}

// Address is the loopback address with a port.
func Address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// Line is how the program names a line of the file named Caddyfile.
func Line(n int) string { return fmt.Sprintf("Caddyfile:%d", n) }
