package command

import (
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestPlainErrors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		log       func(*zap.Logger)
		isServing bool
		told      string // on standard error, in part
		logged    int
	}{
		"an error that ends a command":    {func(l *zap.Logger) { l.Error("no file") }, false, "Error: no file\n", 0},
		"a reload without a Caddyfile":    {func(l *zap.Logger) { l.Error("no config file to load") }, false, "Error: there is no Caddyfile", 0},
		"a start that fails":              {func(l *zap.Logger) { l.Error(startFailed + "no port") }, true, "Error: no port\n", 0},
		"another error of a server":       {func(l *zap.Logger) { l.Error("no file") }, true, "", 1},
		"an error with fields":            {func(l *zap.Logger) { l.Error("no file", zap.Int("a", 1)) }, false, "", 1},
		"an error of a logger":            {func(l *zap.Logger) { l.Named("lm").Error("no file") }, false, "", 1},
		"what is no error":                {func(l *zap.Logger) { l.Info("a file") }, false, "", 1},
		"the warning before a stop's end": {func(l *zap.Logger) { l.Warn(stopFailed, zap.Int("a", 1)) }, false, "", 0},
		"no server": {
			func(l *zap.Logger) {
				l.Error(`performing request: Post "http://127.0.0.1/stop": dial unix /x: no such file`)
			}, false,
			"Error: no lmcaddy seems to be running", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core, logs := observer.New(zapcore.InfoLevel)
			var told strings.Builder
			tt.log(zap.New(plainErrors{core, &told, tt.isServing}))
			if !strings.HasPrefix(told.String(), tt.told) || (tt.told == "") != (told.Len() == 0) || logs.Len() != tt.logged {
				t.Errorf("told %q, logged %v", told.String(), logs.All())
			}
		})
	}
}
