package gateway

import (
	"context"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// Logs reads what the processes have logged.
type Logs interface {
	ReadWorkerLog(context.Context, *api.ReadWorkerLogRequest) (*api.ReadWorkerLogResponse, error)
}

// readLog returns what answers ReadWorkerLog. Services log no secrets; what looks
// like one in what a library says is left out.
func readLog(logs Logs) func(context.Context, *api.ReadWorkerLogRequest) (*api.ReadWorkerLogResponse, error) {
	return func(ctx context.Context, r *api.ReadWorkerLogRequest) (*api.ReadWorkerLogResponse, error) {
		if logs == nil {
			return nil, api.Errorf(codes.Unimplemented, "this gateway runs outside a controller's process, which could read its log")
		}
		resp, err := logs.ReadWorkerLog(ctx, r)
		for _, l := range resp.GetLines() {
			l.Text = scrub(clip(l.Text, textMost))
		}
		return resp, err
	}
}
