package command

import (
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lmcaddy/lmcaddy/internal/home"
)

func TestPlainErrors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		log       func(*zap.Logger)
		isServing bool
		told      string // on standard error
		logged    int
	}{
		"an error that ends a command": {func(l *zap.Logger) { l.Error("no file") }, false, "Error: no file\n", 0},
		"a start that fails":           {func(l *zap.Logger) { l.Error("no port") }, true, "Error: no port\n", 1},
		"an error with fields":         {func(l *zap.Logger) { l.Error("no file", zap.Int("a", 1)) }, true, "", 1},
		"an error of a logger":         {func(l *zap.Logger) { l.Named("lm").Error("no file") }, true, "", 1},
		"what is no error":             {func(l *zap.Logger) { l.Info("a file") }, false, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core, logs := observer.New(zapcore.InfoLevel)
			var told strings.Builder
			tt.log(zap.New(plainErrors{core, &told, tt.isServing}))
			if told.String() != tt.told || logs.Len() != tt.logged {
				t.Errorf("told %q, logged %v", told.String(), logs.All())
			}
		})
	}
}

// What Caddy would refuse only by a technical error is refused before.
func TestCheckStop(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := checkStop(home.Dir(t.TempDir()), nil); err == nil || !strings.HasPrefix(err.Error(), "no lmcaddy seems to be running") {
		t.Error(err)
	}
	if err := checkStop(home.Dir(t.TempDir()), []string{"--address", "localhost:1"}); err != nil {
		t.Error(err)
	}
}
