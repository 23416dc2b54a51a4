package wefttest

import (
	"context"
	"fmt"
	"testing"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
)

// TestRewritten catches a service that changes an event that it has published,
// which only one process that shares memory with it would see.
func TestRewritten(t *testing.T) {
	event := &api.HostChanged{Change: "new"}
	sloppy := weft.Spec{
		Name: "hosts", Publishes: weft.Subjects(api.HostChangedEvent), Subscribes: weft.Subjects(api.PortChangedEvent),
		Run: func(ctx context.Context, env *weft.Env) error {
			weft.On(env, api.PortChangedEvent, func(context.Context, *api.PortChanged) { event.Change = "old" })
			if err := weft.Ready(ctx, env); err != nil {
				return err
			}
			weft.Publish(env, api.HostChangedEvent, event)
			<-ctx.Done()
			return nil
		},
	}
	for mode, want := range map[Mode]string{Pointer: "[event hosts.HostChanged]", Encoded: "[]"} {
		event.Change = "new"
		h := newHarness(t, sloppy, mode)
		Next(h, api.HostChangedEvent)
		Publish(h, api.PortChangedEvent, &api.PortChanged{})
		h.Stop()
		if got := fmt.Sprint(h.rewritten()); got != want {
			t.Errorf("%v: rewritten %s, want %s", mode, got, want)
		}
	}
}
