package caddymodule

import (
	"errors"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/lmcaddy/lmcaddy/node"
)

// Warm says which states of conversations are kept in files. With one, a conversation isn't processed again after its model
// was unloaded, or the server restarted.
type Warm struct {
	// Whether no states are kept, and those that there are are deleted. Default: false.
	Off bool `json:"off,omitempty"`

	// How much all files may take together, in bytes. A tenth of the disk, or 1 GiB if that is less, always stays free. Default:
	// a tenth of what is free at the start, at most 50 GiB.
	Size int64 `json:"size,omitempty"`

	// How much may be written in a day, in bytes. Default: ten times the size, at least 64 and at most
	// 256 GiB.
	Daily int64 `json:"daily,omitempty"`

	// How long a state is kept that isn't used; 0: as long as there is room. Default: 7d.
	MaxAge *caddy.Duration `json:"max_age,omitempty"`

	// How long an instance must have been unused before its states are saved. Those of an instance that is unloaded are saved at
	// once. Default: 1m.
	SaveAfter caddy.Duration `json:"save_after,omitempty"`

	// How many tokens a conversation must have for its state to be saved. Default: 512.
	MinTokens int `json:"min_tokens,omitempty"`
}

// The defaults.
const (
	defaultWarmAge   = 7 * 24 * time.Hour
	defaultSaveAfter = time.Minute
	defaultMinTokens = 512

	mostWarm = 1 << 50 // bytes
)

func (w Warm) settings() node.WarmSettings {
	s := node.WarmSettings{
		Off: w.Off, Size: w.Size, Daily: w.Daily, MaxAge: defaultWarmAge, SaveAfter: time.Duration(w.SaveAfter), MinTokens: w.MinTokens,
	}
	if w.MaxAge != nil {
		s.MaxAge = time.Duration(*w.MaxAge)
	}
	if s.SaveAfter == 0 {
		s.SaveAfter = defaultSaveAfter
	}
	if s.MinTokens == 0 {
		s.MinTokens = defaultMinTokens
	}
	return s
}

// check returns an error if an option has no effect beside another.
func (w Warm) check() error {
	if w.Off && w != (Warm{Off: true}) {
		return errors.New("warm: no states are kept, so the other options have no effect: leave out either \"off\" or the others")
	}
	return nil
}

// warmOption reads
//
//	warm off|on|<size> {
//		size <size>
//		daily <size>
//		max_age <duration>
//		save_after <duration>
//		min_tokens <n>
//	}
//
// The last of several that is "off" makes those before it void.
func (a *App) warmOption(d *caddyfile.Dispenser) error {
	w := a.Warm
	w.Off = false
	args := d.CountRemainingArgs()
	switch {
	case args == 0:
	case args > 1:
		return d.ArgErr()
	default:
		d.NextArg()
		switch d.Val() {
		case "off":
			w = Warm{Off: true}
		case "on":
		default:
			if err := parseSize("warm", d.Val(), &w.Size, mostWarm); err != nil {
				return d.Errf(`%v; "off" keeps no states`, err)
			}
		}
	}
	inBlock := false
	for nesting := d.Nesting(); d.NextBlock(nesting); inBlock = true {
		if err := w.option(d); err != nil {
			return err
		}
	}
	if args == 0 && !inBlock {
		return d.Err(`warm: give "off", a size such as 20GiB, or a block of options`)
	}
	a.Warm = w
	return wrap(d, w.check())
}

func (w *Warm) option(d *caddyfile.Dispenser) error {
	switch d.Val() {
	case "size":
		return size(d, &w.Size, mostWarm)
	case "daily":
		return size(d, &w.Daily, mostWarm)
	case "max_age":
		w.MaxAge = new(caddy.Duration)
		return duration(d, w.MaxAge)
	case "save_after":
		if err := duration(d, &w.SaveAfter); err != nil {
			return err
		}
		if w.SaveAfter == 0 {
			return d.Err(`save_after: it must be longer than 0; "warm off" keeps no states`)
		}
		return nil
	case "min_tokens":
		return wholeNumber(d, 1, &w.MinTokens)
	default:
		return unknownOption(d, "warm", warmOptions)
	}
}
