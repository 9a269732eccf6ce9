package command

import (
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestWarningFilter(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		logger, address string
		isLogged        bool
	}{
		"a socket":       {"admin", "unix//home/run/admin.sock|0600", false},
		"a port":         {"admin", "tcp/0.0.0.0:2019", true},
		"another logger": {"lm", "unix//home/run/admin.sock|0600", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core, logs := observer.New(zapcore.InfoLevel)
			logger := zap.New(warningFilter{core}).Named(tt.logger)
			logger.Warn("open", zap.String("address", tt.address))
			logger.Debug("open", zap.String("address", "tcp/:1")) // below the level of the log
			if isLogged := logs.Len() == 1; isLogged != tt.isLogged {
				t.Errorf("logged: %v", logs.All())
			}
		})
	}
}
