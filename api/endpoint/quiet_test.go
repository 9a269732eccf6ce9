package endpoint

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestQuiet_TellsOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var q quiet
		told := 0
		for range 1000 {
			if _, ok := q.tell("a"); ok {
				told++
			}
		}
		if _, ok := q.tell("b"); !ok || told != 1 {
			t.Errorf("told %d times of a, of b: %t", told, ok)
		}
		time.Sleep(quietTime)
		if skipped, ok := q.tell("a"); !ok || skipped != 999 {
			t.Errorf("%d were skipped, %t", skipped, ok)
		}
	})
}
