package gateway

import (
	"context"

	"github.com/weft-sdn/weft/api"
)

// withoutSecrets returns an answer of ReadWorkerLog without what looks like a secret:
// services log none, and what a library says may.
func withoutSecrets(read func(context.Context, any) (any, error)) func(context.Context, any) (any, error) {
	return func(ctx context.Context, req any) (any, error) {
		resp, err := read(ctx, req)
		if err != nil {
			return nil, err
		}
		for _, l := range resp.(*api.ReadWorkerLogResponse).Lines {
			l.Text = scrub(clip(l.Text, textMost))
		}
		return resp, nil
	}
}
