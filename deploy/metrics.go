package deploy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/deploy/members"
)

// metricsMethod asks a process for its metrics.
const metricsMethod = "deploy.Metrics"

// gatherTimeout is how long a process may take to return its metrics; Gather
// omits those of a slower one.
const gatherTimeout = time.Second

// encodeMetrics encodes the metrics of this process.
func (n *Node) encodeMetrics() ([]byte, error) {
	if n.config.Gatherer == nil {
		return []byte{members.AnswerOK}, nil
	}
	families, err := n.config.Gatherer.Gather()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteByte(members.AnswerOK)
	e := expfmt.NewEncoder(&b, expfmt.NewFormat(expfmt.TypeProtoDelim))
	for _, f := range families {
		if err := e.Encode(f); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// Gather returns the metrics of all processes, each with the label process
// (prometheus.Gatherer).
func (n *Node) Gather() ([]*dto.MetricFamily, error) {
	peers := n.members.others()
	all := map[string]*dto.MetricFamily{}
	var mu sync.Mutex // guards all
	add := func(process string, data []byte) {
		d := expfmt.NewDecoder(bytes.NewReader(data), expfmt.NewFormat(expfmt.TypeProtoDelim))
		mu.Lock()
		defer mu.Unlock()
		for {
			f := &dto.MetricFamily{}
			if err := d.Decode(f); err != nil {
				if !errors.Is(err, io.EOF) {
					n.log.Warn("metrics of a process cannot be read", "of", process, "error", err)
				}
				return
			}
			for _, m := range f.Metric {
				m.Label = append(m.Label, &dto.LabelPair{Name: proto.String("process"), Value: proto.String(process)})
			}
			if have := all[f.GetName()]; have == nil {
				all[f.GetName()] = f
			} else if have.GetType() == f.GetType() {
				have.Metric = append(have.Metric, f.Metric...)
			}
		}
	}
	if own, err := n.encodeMetrics(); err == nil {
		add(n.config.Process, own[1:])
	}
	var asked sync.WaitGroup
	for process, p := range peers {
		asked.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), gatherTimeout)
			defer cancel()
			if data, err := p.Request(ctx, metricsMethod, nil); err == nil && len(data) > 0 && data[0] == members.AnswerOK {
				add(process, data[1:])
			}
		})
	}
	asked.Wait()
	list := make([]*dto.MetricFamily, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[name])
	}
	return list, nil
}

var _ prometheus.Gatherer = (*Node)(nil)
