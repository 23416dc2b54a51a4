// Package local runs services in one process: it gives each its configuration,
// runs it, and connects them by calls, events and the packet-in pipeline. What
// they want of other processes, a Cluster does. It is given the Specs and
// imports no service.
//
// deploy and wefttest import it, and those who trace packets or store state.
package local

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/deploy/config"
)

// Config says what a worker runs, and how. The zero value of every field but
// Specs is usable.
type Config struct {
	// Specs are the services to run, in the order in which they start; they
	// stop in reverse. The caller does not change them afterwards.
	Specs []weft.Spec
	// Cluster is the other processes; nil if there are none.
	Cluster Cluster
	// StandIns run in place of the Run of the services of their names, with
	// messages whose types they do not know: tests, and whatever speaks for
	// services elsewhere.
	StandIns map[string]func(context.Context, weft.Runtime) error
	// Partial says that Specs is a selection made on purpose: what services
	// want of absent ones is no error, but their calls fail with Unavailable
	// and the events do not come.
	Partial bool
	// Pipeline names the stages of the packet-in pipeline in order. Empty
	// means those of DefaultPipeline that are present.
	Pipeline []string
	// Settings override single keys of the services' configurations.
	Settings *config.Settings
	// Store keeps durable state. It may be nil if no service declares Buckets.
	Store Store
	// Scratch is the directory for memory that outlives the process, whose name
	// Process is; empty for none.
	Scratch, Process string
	// Tracer takes spans of single packet-ins; nil for none.
	Tracer Tracer
	// WatchLife is how long packets are watched for an asker that does not ask
	// again; 0 for 3 s.
	WatchLife time.Duration
	// Registry is where the services' metrics are exported; nil for nowhere.
	Registry prometheus.Registerer
	// Log is where services and the worker log; nil for nowhere.
	Log *slog.Logger
	// Encoded sends every call and every event, encoded, over a transport, and
	// every packet-in and decision encoded past every stage, as between
	// processes. Slower; it shows that services share no memory.
	Encoded bool
	// ReadyTimeout bounds the start until all services are set up; 0 is 10 s.
	ReadyTimeout time.Duration
	// StopTimeout bounds the stop of each single service; 0 is 5 s.
	StopTimeout time.Duration
}

// Store keeps the buckets of the services: bus.Store, or wefttest.Store in
// memory.
type Store interface {
	// Bucket opens a bucket, named service.bucket, and makes it if it is not
	// there yet.
	Bucket(ctx context.Context, name string) (weft.Bucket, error)
}
