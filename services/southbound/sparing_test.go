package southbound

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft/services/southbound/mastership"
)

// However often connections are refused, the log has a bounded number of lines, which
// say how many there are not.
func TestRefusalsFillNoLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		h := newHub(*defaults(), &mastership.Fence{}, slog.New(slog.NewTextHandler(&text, nil)))
		const times = 6000
		for range times {
			h.sparing.warn(h.Log, "connection ended before it was a switch")
		}
		time.Sleep(refusalEvery)
		h.sparing.warn(h.Log, "connection ended before it was a switch")
		if n := strings.Count(text.String(), "\n"); n != refusalsAtOnce+1 || !strings.Contains(text.String(), "left_out=5980") {
			t.Errorf("%d lines of %d refusals: %s", n, times+1, text.String())
		}
	})
}
