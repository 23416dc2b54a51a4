package apps

import (
	"context"
	"testing"

	"github.com/weft-sdn/weft/api"
)

// BenchmarkStage: one packet to an app in Go and its decision back, by
// transport.
func BenchmarkStage(b *testing.B) {
	for name, attach := range transports() {
		b.Run(name, func(b *testing.B) {
			w := serve(b, nil)
			if _, err := attach(b, w, hello("bench", "stage"), each(&api.Decision{Verdict: "done"})); err != nil {
				b.Fatal(err)
			}
			app := w.runtime.wait(b, "bench").App
			list := batch(80)
			for b.Loop() {
				if err := app.Packets(context.Background(), list); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
