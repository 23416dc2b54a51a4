package openflow

import "github.com/weft-sdn/weft/flow"

// PortStats is the counters of a port (OpenFlow 1.3.5 §7.3.5.6); a counter
// that the switch does not keep is all ones.
type PortStats struct {
	Port         flow.Port
	RxPackets    uint64
	TxPackets    uint64
	RxBytes      uint64
	TxBytes      uint64
	RxDropped    uint64
	TxDropped    uint64
	RxErrors     uint64
	TxErrors     uint64
	RxFrameErr   uint64
	RxOverErr    uint64
	RxCRCErr     uint64
	Collisions   uint64
	DurationSec  uint32 // 0 in OpenFlow 1.0
	DurationNsec uint32
}

// QueueStats is the counters of a queue (OpenFlow 1.3.5 §7.3.5.8).
type QueueStats struct {
	Port         flow.Port
	Queue        uint32
	TxBytes      uint64
	TxPackets    uint64
	TxErrors     uint64
	DurationSec  uint32 // 0 in OpenFlow 1.0
	DurationNsec uint32
}

const (
	portStatsLen    = 112
	portStatsLen10  = 104
	queueStatsLen   = 40
	queueStatsLen10 = 32
)

// AppendPortStats appends one port to the body of a port statistics reply.
func (v Version) AppendPortStats(dst []byte, s *PortStats) ([]byte, error) {
	if v == V10 {
		p, ok := port10(s.Port)
		if !ok {
			return dst, unsupported(v, "port statistics", "port "+s.Port.String(), badRequestPort)
		}
		dst = be.AppendUint64(dst, uint64(p)<<48)
	} else {
		dst = be.AppendUint64(dst, uint64(s.Port)<<32)
	}
	for _, c := range [...]uint64{s.RxPackets, s.TxPackets, s.RxBytes, s.TxBytes, s.RxDropped, s.TxDropped,
		s.RxErrors, s.TxErrors, s.RxFrameErr, s.RxOverErr, s.RxCRCErr, s.Collisions} {
		dst = be.AppendUint64(dst, c)
	}
	if v != V10 {
		dst = be.AppendUint32(dst, s.DurationSec)
		dst = be.AppendUint32(dst, s.DurationNsec)
	}
	return dst, nil
}

// DecodePortStats appends the ports in the body of a port statistics reply to dst.
func (v Version) DecodePortStats(body []byte, dst []PortStats) ([]PortStats, error) {
	n := portStatsLen
	if v == V10 {
		n = portStatsLen10
	}
	if err := v.checkRecords(body, n); err != nil {
		return dst, err
	}
	for ; len(body) > 0; body = body[n:] {
		b := body[8:n]
		s := PortStats{
			Port:      flow.Port(be.Uint32(body)),
			RxPackets: be.Uint64(b), TxPackets: be.Uint64(b[8:]), RxBytes: be.Uint64(b[16:]), TxBytes: be.Uint64(b[24:]),
			RxDropped: be.Uint64(b[32:]), TxDropped: be.Uint64(b[40:]), RxErrors: be.Uint64(b[48:]), TxErrors: be.Uint64(b[56:]),
			RxFrameErr: be.Uint64(b[64:]), RxOverErr: be.Uint64(b[72:]), RxCRCErr: be.Uint64(b[80:]), Collisions: be.Uint64(b[88:]),
		}
		if v == V10 {
			s.Port = portFrom10(be.Uint16(body))
		} else {
			s.DurationSec, s.DurationNsec = be.Uint32(b[96:]), be.Uint32(b[100:])
		}
		dst = append(dst, s)
	}
	return dst, nil
}

// AppendQueueStats appends one queue to the body of a queue statistics reply.
func (v Version) AppendQueueStats(dst []byte, s *QueueStats) ([]byte, error) {
	if v == V10 {
		p, ok := port10(s.Port)
		if !ok {
			return dst, unsupported(v, "queue statistics", "port "+s.Port.String(), badRequestPort)
		}
		dst = be.AppendUint32(dst, uint32(p)<<16)
	} else {
		dst = be.AppendUint32(dst, uint32(s.Port))
	}
	dst = be.AppendUint32(dst, s.Queue)
	dst = be.AppendUint64(dst, s.TxBytes)
	dst = be.AppendUint64(dst, s.TxPackets)
	dst = be.AppendUint64(dst, s.TxErrors)
	if v != V10 {
		dst = be.AppendUint32(dst, s.DurationSec)
		dst = be.AppendUint32(dst, s.DurationNsec)
	}
	return dst, nil
}

// DecodeQueueStats appends the queues in the body of a queue statistics reply
// to dst.
func (v Version) DecodeQueueStats(body []byte, dst []QueueStats) ([]QueueStats, error) {
	n := queueStatsLen
	if v == V10 {
		n = queueStatsLen10
	}
	if err := v.checkRecords(body, n); err != nil {
		return dst, err
	}
	for ; len(body) > 0; body = body[n:] {
		b := body[:n]
		s := QueueStats{
			Port: flow.Port(be.Uint32(b)), Queue: be.Uint32(b[4:]),
			TxBytes: be.Uint64(b[8:]), TxPackets: be.Uint64(b[16:]), TxErrors: be.Uint64(b[24:]),
		}
		if v == V10 {
			s.Port = portFrom10(be.Uint16(b))
		} else {
			s.DurationSec, s.DurationNsec = be.Uint32(b[32:]), be.Uint32(b[36:])
		}
		dst = append(dst, s)
	}
	return dst, nil
}
