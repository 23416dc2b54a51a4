package run

import (
	"fmt"
	"runtime/pprof"

	"github.com/weft-sdn/weft/internal/asowner"
)

// startProfile records where the processor's time goes until stop is called.
func startProfile(path string) (stop func(), err error) {
	f, err := asowner.Create(path)
	if err != nil {
		return nil, fmt.Errorf("--cpu-profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("--cpu-profile: %w", err)
	}
	return func() {
		pprof.StopCPUProfile()
		f.Close()
	}, nil
}
