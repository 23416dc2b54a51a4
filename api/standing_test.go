package api

import (
	"errors"
	"testing"
	"time"
)

// TestRetry: what a switch refuses is tried again ever more rarely, what is late
// soon, and the log says each reason once.
func TestRetry(t *testing.T) {
	failed := func(refused ...bool) error {
		m := &SetStandingResponse{}
		for _, r := range refused {
			m.Failed = append(m.Failed, &WantedFlow{Reason: "no", Refused: r})
		}
		return m.Confirmed(3)
	}
	if failed() != nil || failed(true, true).Error() != "2 of 3 entries: no" || !RefusedBySwitch(failed(true)) || RefusedBySwitch(failed(true, false)) || RefusedBySwitch(errors.New("no")) {
		t.Error("what is refused is told wrongly")
	}
	for refused, most := range map[bool]time.Duration{true: retryRefused, false: 4 * time.Second} {
		var r Retry
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
		if r.Soon(); r.pause != 0 {
			t.Error("not soon")
		}
	}
}
