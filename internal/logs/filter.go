package logs

import (
	"log/slog"
	"strings"
	"time"
)

// Filter selects records. The zero value selects those above debug level.
type Filter struct {
	Level    slog.Level // the least; 0: info
	Output   bool       // also lines of engines' output, whatever the least level
	Models   []string   // keys of the models that the records are about; none: any
	Instance string     // empty: any
	Request  string     // empty: any
	Since    time.Time
}

// isVerbose reports whether records at debug level may pass.
func (f *Filter) isVerbose() bool { return f.Level < slog.LevelInfo || f.Output }

func (f *Filter) passes(r *Record) bool {
	switch {
	case r.Level < f.Level && (!f.Output || !r.IsOutput()):
		return false
	case f.Request != "" && r.Request != f.Request:
		return false
	case f.Instance != "" && !strings.EqualFold(r.Instance, f.Instance):
		return false
	case r.Time.Before(f.Since):
		return false
	}
	return len(f.Models) == 0 || f.isAbout(r)
}

// isAbout reports whether a record is about one of the models, or about an instance of one.
func (f *Filter) isAbout(r *Record) bool {
	key, _, _ := strings.Cut(r.Instance, ":")
	for _, model := range f.Models {
		if strings.EqualFold(r.Model, model) || strings.EqualFold(r.Instance, model) || r.Instance != "" && strings.EqualFold(key, model) {
			return true
		}
	}
	return false
}
