package process

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"github.com/lmcaddy/lmcaddy/internal/http1"
)

// compiling is the first use of an engine's code on a GPU for a kind of model. Drivers compile it then, which takes up to a minute,
// and keep the result in a cache. Without a request of our own, the first one of a client would wait for that.
type compiling struct {
	mark string // the file that says that it was done
	path string
	body []byte
}

// toCompile returns what has to be compiled for a launch; nil: nothing, or it was done before.
func (p *Process) toCompile(l *Launch, b Build) *compiling {
	compiler, ok := p.program.(Compiler)
	if !ok || len(l.On.Devices) == 0 || p.host.Cache == "" {
		return nil
	}
	c := &compiling{}
	if c.path, c.body = compiler.Compile(l); c.path == "" {
		return nil
	}
	kind := fmt.Sprintf("%q %q %q %q %d %q", b.Version, l.Model.Architecture, l.Model.Quantization.Name, l.Engine, l.FlashAttention,
		titles(b.Devices))
	c.mark = filepath.Join(p.host.Cache, "compiled", fmt.Sprintf("%x", sha256.Sum256([]byte(kind)))[:16])
	if _, err := os.Stat(c.mark); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return c
}

func titles(devices []Device) (all []string) {
	for _, d := range devices {
		all = append(all, d.Title)
	}
	return all
}

// compile has the engine's code compiled. If that fails, so will a request, which is then told why.
func (p *Process) compile(c *compiling) {
	p.log.Info("the engine is used on this GPU for a model of this kind for the first time: if its code has to be compiled for it, that takes up to a minute, once")
	resp, err := p.do(p.ctx, c.path, http1.Body{Pieces: [][]byte{c.body}})
	if err != nil {
		return
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err = io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		p.log.Debug("the first use on a GPU", "status", resp.StatusCode, "error", err)
		return
	}
	if err := os.MkdirAll(filepath.Dir(c.mark), 0o700); err == nil {
		err = os.WriteFile(c.mark, nil, 0o600)
		p.log.Debug("the engine's code is compiled", "error", err)
	}
}
