package run

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/tracing"
)

// traceOptions are the flags by which single packet-ins are traced.
type traceOptions struct {
	endpoint string
	oneIn    uint64
}

func (o *traceOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.endpoint, "trace", "", "export the way of single packet-ins through the stages as OpenTelemetry traces to this collector, such as http://127.0.0.1:4318")
	f.Uint64Var(&o.oneIn, "trace-one-in", 1000, "with --trace: trace one packet-in of so many")
}

// config returns the configuration of the exporter in a process.
func (o *traceOptions) config(process string) tracing.Config {
	return tracing.Config{Endpoint: o.endpoint, OneIn: o.oneIn, Process: process, Version: Build().Version}
}

// check says what is wrong with the flags.
func (o *traceOptions) check() error {
	if o.endpoint == "" {
		return nil
	}
	if err := o.config("").Check(); err != nil {
		return fmt.Errorf("--trace: %w", err)
	}
	return nil
}

// args returns the flags for another process.
func (o *traceOptions) args() []string {
	if o.endpoint == "" {
		return nil
	}
	return []string{"--trace", o.endpoint, "--trace-one-in", strconv.FormatUint(o.oneIn, 10)}
}

// open returns the tracer of a process, nil if nothing is to be traced; end
// exports what is left.
func (o *traceOptions) open(ctx context.Context, process string) (t local.Tracer, end func(), err error) {
	if o.endpoint == "" {
		return nil, func() {}, nil
	}
	e, err := tracing.New(ctx, o.config(process))
	if err != nil {
		return nil, nil, err
	}
	return e, func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		_ = e.Close(last) // a collector that is not there costs no more than its spans
	}, nil
}
