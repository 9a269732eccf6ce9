package caddymodule

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/lmcaddy/lmcaddy/internal/resource"
)

// Described is a configuration that was read without being started.
type Described struct {
	resource.Configuration

	// PostgresURL is the address of the database, with its password; empty: SQLite.
	PostgresURL string

	// Mistakes are sentences without a full stop about what is surely meant otherwise.
	Mistakes []string
}

// Describe reads a configuration in Caddy's JSON as a start would, and starts nothing. What Caddy logs or stores on the way is
// thrown away. The error is that of a start, where it is about the configuration.
func Describe(config []byte) (Described, error) {
	var c caddy.Config
	if err := json.Unmarshal(config, &c); err != nil {
		return Described{}, fmt.Errorf("the configuration isn't valid: %w", err)
	}
	storage, err := os.MkdirTemp("", "lmcaddy-describe-")
	if err != nil {
		return Described{}, err
	}
	defer os.RemoveAll(storage) //nolint:errcheck // in the system's folder for temporary files
	c.StorageRaw = caddyconfig.JSON(map[string]string{"module": "file_system", "root": storage}, nil)
	nowhere := caddyconfig.JSONModuleObject(struct{}{}, "output", "discard", nil)
	c.Logging = &caddy.Logging{Logs: map[string]*caddy.CustomLog{caddy.DefaultLoggerName: {BaseLog: caddy.BaseLog{WriterRaw: nowhere}}}}
	_, _, _ = caddy.BufferedLog() // holds what the old logger says about the new one
	ctx, err := caddy.ProvisionContext(&c)
	if err != nil {
		return Described{}, err
	}
	app, err := ctx.AppIfConfigured("lm")
	if errors.Is(err, caddy.ErrNotConfigured) {
		return Described{}, errors.New("the configuration has no lm_api, and no global option lm: it serves no models")
	}
	if err != nil {
		return Described{}, err
	}
	a := app.(*App)
	return Described{a.describe(ctx), a.settings.Store.PostgresURL, a.mistakes()}, nil
}

func (a *App) describe(ctx caddy.Context) resource.Configuration {
	c := a.InForce(a.settings.Hubs)
	c.File, c.Sites = program().ConfigFile, sitesOf(ctx)
	return c
}
