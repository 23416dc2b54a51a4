package api_test

import (
	"errors"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
)

// TestRetry: what a switch refuses is tried again ever more rarely, what is late
// soon, and the log says each reason once.
func TestRetry(t *testing.T) {
	failed := func(refused ...bool) error {
		m := &api.SetStandingResponse{}
		for _, r := range refused {
			m.Failed = append(m.Failed, &api.WantedFlow{Reason: "no", Refused: r})
		}
		return m.Confirmed(3)
	}
	if failed() != nil || failed(true, true).Error() != "2 of 3 entries: no" || !api.RefusedBySwitch(failed(true)) || api.RefusedBySwitch(failed(true, false)) || api.RefusedBySwitch(errors.New("no")) {
		t.Error("what is refused is told wrongly")
	}
	for refused, most := range map[bool]time.Duration{true: 5 * time.Minute, false: 4 * time.Second} {
		var r api.Retry
		var last time.Duration
		said := 0
		for range 20 {
			pause, news := r.After(failed(refused), time.Second, 4*time.Second)
			if pause < last || last == 0 && pause != time.Second {
				t.Errorf("%v after %v", pause, last)
			}
			if last = pause; news {
				said++
			}
		}
		if last != most || said != 1 {
			t.Errorf("refused %v: %v in the end, said %d times", refused, last, said)
		}
		r.Soon()
		if pause, _ := r.After(failed(refused), time.Second, 4*time.Second); pause != time.Second {
			t.Errorf("%v after Soon", pause)
		}
	}
}
