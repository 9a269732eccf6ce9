package text

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
)

func TestTogether(t *testing.T) {
	t.Parallel()
	fails := errors.New("it fails")
	t.Run("no more than so many at a time", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var running, done atomic.Int32
			proceed := make(chan struct{})
			finished := make(chan error)
			go func() {
				finished <- Parallel(t.Context(), 5, 2, func(context.Context, int) error {
					running.Add(1)
					<-proceed
					running.Add(-1)
					done.Add(1)
					return nil
				})
			}()
			synctest.Wait()
			if n := running.Load(); n != 2 {
				t.Errorf("%d at a time", n)
			}
			close(proceed)
			if err := <-finished; err != nil || done.Load() != 5 {
				t.Errorf("%d, %v", done.Load(), err)
			}
		})
	})
	t.Run("the first error ends the others", func(t *testing.T) {
		t.Parallel()
		err := Parallel(t.Context(), 5, 2, func(ctx context.Context, i int) error {
			if i == 1 {
				return fails
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, fails) {
			t.Error(err)
		}
	})
	t.Run("a panic goes on in the caller", func(t *testing.T) {
		t.Parallel()
		defer func() {
			if p, ok := recover().(*endpoint.Panic); !ok || p.Fault != "of a sort" {
				t.Errorf("%+v", p)
			}
		}()
		_ = Parallel(t.Context(), 2, 2, func(ctx context.Context, i int) error {
			if i == 1 {
				panic("of a sort")
			}
			<-ctx.Done()
			return ctx.Err()
		})
	})
}
