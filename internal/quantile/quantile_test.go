package quantile_test

import (
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/quantile"
)

func TestMedian(t *testing.T) {
	if m := quantile.Median([]float64{9, 1, 4, 2}); m != 3 {
		t.Errorf("of four: %v, want 3", m)
	}
	if m := quantile.Median([]time.Duration{9, 1, 4}); m != 4 {
		t.Errorf("of three: %v, want 4", m)
	}
	if m := quantile.Median[float64](nil); m != 0 {
		t.Errorf("of none: %v, want 0", m)
	}
}

func TestNearest(t *testing.T) {
	for q, want := range map[float64]int{0: 1, 0.25: 1, 0.26: 2, 0.5: 2, 0.95: 4, 1: 4} {
		if got := quantile.Nearest([]int{1, 2, 3, 4}, q); got != want {
			t.Errorf("%v: %d, want %d", q, got, want)
		}
	}
}
