// Package tracing exports the steps of single packet-ins as OpenTelemetry
// traces, over OTLP/HTTP. cmd/weft imports it.
package tracing

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/weft-sdn/weft/deploy/local"
)

// Config says where traces go, and how many packet-ins are traced.
type Config struct {
	// Endpoint is the collector: http://HOST:PORT or https://HOST:PORT, to whose
	// /v1/traces spans are posted unless it has a path of its own.
	Endpoint string
	// OneIn is of how many packet-ins one is traced; at least 1.
	OneIn uint64
	// Process and Version are told with every span.
	Process, Version string
}

// Check says what is wrong with a configuration.
func (c Config) Check() error {
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("trace endpoint %q: want http://HOST:PORT or https://HOST:PORT of an OTLP collector (usually port 4318)", c.Endpoint)
	}
	if c.OneIn == 0 {
		return fmt.Errorf("trace one packet-in in 0: want 1 for every packet-in, 1000 for one in a thousand")
	}
	return nil
}

// Exporter is a deploy.Tracer that exports spans. It drops what the collector
// does not accept in time.
type Exporter struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	oneIn    uint64
	seen     atomic.Uint64
}

// New returns an exporter; Close ends it. It does not wait for the collector.
func New(ctx context.Context, c Config) (*Exporter, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	endpoint := c.Endpoint
	if u, _ := url.Parse(endpoint); u.Path == "" || u.Path == "/" {
		endpoint = u.JoinPath("v1/traces").String()
	}
	out, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint))
	if err != nil {
		return nil, fmt.Errorf("trace to %s: %w", c.Endpoint, err)
	}
	provider := sdk.NewTracerProvider(
		sdk.WithBatcher(out, sdk.WithBatchTimeout(time.Second)),
		sdk.WithIDGenerator(numbered{}),
		sdk.WithSampler(sdk.AlwaysSample()), // packets that are not traced make no span
		sdk.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "weft"), attribute.String("service.instance.id", c.Process), attribute.String("service.version", c.Version))),
	)
	return &Exporter{provider: provider, tracer: provider.Tracer("weft"), oneIn: c.OneIn}, nil
}

// Close exports what is left, as long as ctx allows, and ends the exporter.
func (e *Exporter) Close(ctx context.Context) error { return e.provider.Shutdown(ctx) }

// Sample picks the first of every OneIn packet-ins.
func (e *Exporter) Sample() uint64 {
	if (e.seen.Add(1)-1)%e.oneIn != 0 {
		return 0
	}
	return rand.Uint64() | 1
}

// Span exports a span. All processes derive the ids of a trace and of its root
// span from its number alone, so nothing else needs to travel with the packet.
func (e *Exporter) Span(s local.Span) {
	traceID, rootID := ids(s.Trace)
	ctx := context.WithValue(context.Background(), number{}, s.Trace)
	options := []trace.SpanStartOption{trace.WithTimestamp(s.Began)}
	if s.Root {
		options = append(options, trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindServer))
	} else {
		ctx = trace.ContextWithRemoteSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: traceID, SpanID: rootID, TraceFlags: trace.FlagsSampled, Remote: true,
		}))
	}
	_, span := e.tracer.Start(ctx, s.Name, options...)
	span.SetAttributes(attribute.String("weft.verdict", s.Verdict.String()))
	if s.Switch != 0 {
		span.SetAttributes(attribute.String("weft.dpid", s.Switch.String()))
	}
	if s.Port != 0 {
		span.SetAttributes(attribute.Int64("weft.port", int64(s.Port)), attribute.String("weft.eth_src", s.Src.String()), attribute.String("weft.eth_dst", s.Dst.String()))
	}
	span.End(trace.WithTimestamp(s.Ended))
}

// ids returns the ids of a trace and of its root span.
func ids(n uint64) (trace.TraceID, trace.SpanID) {
	var t trace.TraceID
	var s trace.SpanID
	binary.BigEndian.PutUint64(t[:8], n)
	binary.BigEndian.PutUint64(t[8:], n*0x9e3779b97f4a7c15|1)
	binary.BigEndian.PutUint64(s[:], n)
	return t, s
}

// number is the key of a context's value: the number of the trace whose root is
// begun.
type number struct{}

// numbered makes the ids of root spans from their trace's number.
type numbered struct{}

// NewIDs returns the ids of a root span.
func (numbered) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	n, _ := ctx.Value(number{}).(uint64)
	return ids(n)
}

// NewSpanID returns the id of another span.
func (numbered) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	binary.BigEndian.PutUint64(id[:], rand.Uint64()|1)
	return id
}
