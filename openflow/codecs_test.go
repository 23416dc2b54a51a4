package openflow

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/weft-sdn/weft/flow"
)

// codec is one kind of message as the tests see it: random values of it, and
// both directions. Decoding always starts from a value that was used before.
type codec struct {
	name     string
	versions []Version
	random   func(r *rand.Rand, v Version) any
	encode   func(v Version, dst []byte, xid uint32, x any) ([]byte, error)
	decode   func(v Version, msg []byte) (any, error)
}

var both, only13 = []Version{V10, V13}, []Version{V13}

// message makes a codec of methods that return what they decode.
func message[T any](name string, versions []Version, random func(*rand.Rand, Version) T,
	encode func(Version, []byte, uint32, T) ([]byte, error), decode func(Version, []byte) (T, error)) codec {
	return codec{name, versions,
		func(r *rand.Rand, v Version) any { return random(r, v) },
		func(v Version, dst []byte, xid uint32, x any) ([]byte, error) { return encode(v, dst, xid, x.(T)) },
		func(v Version, msg []byte) (any, error) { return decode(v, msg) },
	}
}

// multipart makes a codec of the body of a multipart reply.
func multipart[T any](name string, t MultipartType, versions []Version, random func(*rand.Rand, Version) T,
	encode func(Version, []byte, T) ([]byte, error), decode func(Version, []byte) (T, error)) codec {
	return message(name, versions, random,
		func(v Version, dst []byte, xid uint32, x T) ([]byte, error) {
			body, err := encode(v, nil, x)
			if err != nil {
				return dst, err
			}
			return v.AppendMultipartReply(dst, xid, t, true, body)
		},
		func(v Version, msg []byte) (x T, err error) {
			r, err := v.DecodeMultipartReply(msg)
			if err != nil {
				return x, err
			}
			if r.Type != t || !r.More {
				return x, fmt.Errorf("frame: type %d, more %t", r.Type, r.More)
			}
			return decode(v, r.Body)
		})
}

// list makes a codec of the body of a multipart reply that is a list.
func list[T any](name string, t MultipartType, versions []Version, random func(*rand.Rand, Version) T,
	encode func(Version, []byte, *T) ([]byte, error), decode func(Version, []byte, []T) ([]T, error)) codec {
	return multipart(name, t, versions,
		func(r *rand.Rand, v Version) []T { return many(r, 4, func() T { return random(r, v) }) },
		func(v Version, dst []byte, xs []T) (out []byte, err error) {
			for i := range xs {
				if dst, err = encode(v, dst, &xs[i]); err != nil {
					return dst, err
				}
			}
			return dst, nil
		},
		func(v Version, body []byte) ([]T, error) { return decode(v, body, nil) })
}

func sure[T any](f func(Version, []byte, T) []byte) func(Version, []byte, T) ([]byte, error) {
	return func(v Version, dst []byte, x T) ([]byte, error) { return f(v, dst, x), nil }
}

type config struct{ flags, miss uint16 }

type portStatus struct {
	reason PortReason
	port   PortDesc
}

type role struct {
	role       Role
	generation uint64
}

type queueConfig struct {
	port   flow.Port
	queues []Queue
}

// codecs is every message but those that are a header only.
func codecs() []codec {
	return []codec{
		message("hello", only13,
			func(r *rand.Rand, v Version) Versions { return Versions(r.Uint32())&^1 | 1<<V13 },
			func(v Version, dst []byte, xid uint32, x Versions) ([]byte, error) {
				if x&^1 == 0 {
					return dst, errors.New("a peer that speaks no version")
				}
				var list []Version
				for v := Version(1); v < 32; v++ {
					if x.Has(v) {
						list = append(list, v)
					}
				}
				return v.AppendHello(dst, xid, list...), nil
			},
			func(v Version, msg []byte) (Versions, error) { return DecodeHello(msg) }),
		message("error", both, randomError,
			func(v Version, dst []byte, xid uint32, x Error) ([]byte, error) {
				return v.AppendError(dst, x.Xid, &x), nil
			}, Version.DecodeError),
		message("experimenter", both, randomExperimenter,
			func(v Version, dst []byte, xid uint32, x Experimenter) ([]byte, error) {
				return v.AppendExperimenter(dst, xid, &x)
			}, Version.DecodeExperimenter),
		message("set-controller-id", both,
			func(r *rand.Rand, _ Version) uint16 { return uint16(r.Uint32()) },
			Version.AppendSetControllerID,
			func(v Version, msg []byte) (uint16, error) {
				id, ok, err := v.DecodeSetControllerID(msg)
				if err == nil && !ok {
					err = errors.New("another message")
				}
				return id, err
			}),
		message("features-reply", both, randomFeatures,
			func(v Version, dst []byte, xid uint32, x Features) ([]byte, error) {
				return v.AppendFeaturesReply(dst, xid, &x)
			}, Version.DecodeFeaturesReply),
		message("set-config", both,
			func(r *rand.Rand, v Version) config { return config{uint16(r.Uint32()), uint16(r.Uint32())} },
			func(v Version, dst []byte, xid uint32, x config) ([]byte, error) {
				return v.AppendSetConfig(dst, xid, x.flags, x.miss), nil
			},
			func(v Version, msg []byte) (c config, err error) {
				c.flags, c.miss, err = v.DecodeConfig(msg)
				return c, err
			}),
		message("packet-in", both, randomPacketIn,
			func(v Version, dst []byte, xid uint32, x flow.PacketIn) ([]byte, error) {
				return v.AppendPacketIn(dst, xid, &x)
			},
			func(v Version, msg []byte) (flow.PacketIn, error) {
				in := flow.PacketIn{Table: 9, Cookie: 9, Key: flow.Key{InPort: 9, InPhyPort: 9, Metadata: 9, TunnelID: 9}, Data: []byte{9}}
				err := v.DecodePacketIn(msg, &in)
				return in, err
			}),
		message("packet-out", both, randomPacketOut,
			func(v Version, dst []byte, xid uint32, x flow.PacketOut) ([]byte, error) {
				return v.AppendPacketOut(dst, xid, &x)
			},
			func(v Version, msg []byte) (flow.PacketOut, error) {
				o := flow.PacketOut{Actions: make([]flow.Action, 3, 5), Data: []byte{9}}
				err := v.DecodePacketOut(msg, &o)
				return o, err
			}),
		message("flow-mod", both, randomMod,
			func(v Version, dst []byte, xid uint32, x flow.Mod) ([]byte, error) {
				return v.AppendFlowMod(dst, xid, &x)
			},
			func(v Version, msg []byte) (flow.Mod, error) {
				m := randomMod(rand.New(rand.NewPCG(9, 9)), V13) // a used one
				err := v.DecodeFlowMod(msg, &m)
				return m, err
			}),
		message("flow-removed", both, randomFlowRemoved,
			func(v Version, dst []byte, xid uint32, x FlowRemoved) ([]byte, error) {
				return v.AppendFlowRemoved(dst, xid, &x)
			},
			func(v Version, msg []byte) (FlowRemoved, error) {
				x := FlowRemoved{Partial: true, Table: 9, HardTimeout: 9}
				err := v.DecodeFlowRemoved(msg, &x)
				return x, err
			}),
		message("port-status", both,
			func(r *rand.Rand, v Version) portStatus { return portStatus{PortReason(r.IntN(3)), randomPort(r, v)} },
			func(v Version, dst []byte, xid uint32, x portStatus) ([]byte, error) {
				return v.AppendPortStatus(dst, xid, x.reason, &x.port)
			},
			func(v Version, msg []byte) (p portStatus, err error) {
				p.reason, p.port, err = v.DecodePortStatus(msg)
				return p, err
			}),
		message("port-mod", both,
			func(r *rand.Rand, v Version) PortMod {
				return PortMod{port(r, v), mac(r), r.Uint32(), r.Uint32(), portFeatures(r, v)}
			},
			func(v Version, dst []byte, xid uint32, x PortMod) ([]byte, error) {
				return v.AppendPortMod(dst, xid, &x)
			}, Version.DecodePortMod),
		message("table-mod", only13,
			func(r *rand.Rand, v Version) TableMod { return TableMod{uint8(r.Uint32()), r.Uint32()} },
			func(v Version, dst []byte, xid uint32, x TableMod) ([]byte, error) {
				return v.AppendTableMod(dst, xid, &x)
			}, Version.DecodeTableMod),
		message("group-mod", only13,
			func(r *rand.Rand, v Version) flow.GroupMod {
				return flow.GroupMod{Command: command3(r), Group: randomGroup(r, v)}
			},
			func(v Version, dst []byte, xid uint32, x flow.GroupMod) ([]byte, error) {
				return v.AppendGroupMod(dst, xid, &x)
			},
			func(v Version, msg []byte) (flow.GroupMod, error) {
				m := flow.GroupMod{Group: flow.Group{Buckets: make([]flow.Bucket, 2)}}
				err := v.DecodeGroupMod(msg, &m)
				return m, err
			}),
		message("meter-mod", only13,
			func(r *rand.Rand, v Version) flow.MeterMod {
				return flow.MeterMod{Command: command3(r), Meter: randomMeter(r, v)}
			},
			func(v Version, dst []byte, xid uint32, x flow.MeterMod) ([]byte, error) {
				return v.AppendMeterMod(dst, xid, &x)
			},
			func(v Version, msg []byte) (flow.MeterMod, error) {
				m := flow.MeterMod{Meter: flow.Meter{Bands: make([]flow.Band, 2)}}
				err := v.DecodeMeterMod(msg, &m)
				return m, err
			}),
		message("role-request", only13, randomRole,
			func(v Version, dst []byte, xid uint32, x role) ([]byte, error) {
				return v.AppendRoleRequest(dst, xid, x.role, x.generation)
			},
			func(v Version, msg []byte) (x role, err error) {
				x.role, x.generation, err = v.DecodeRoleRequest(msg)
				return x, err
			}),
		message("role-reply", only13, randomRole,
			func(v Version, dst []byte, xid uint32, x role) ([]byte, error) {
				return v.AppendRoleReply(dst, xid, x.role, x.generation)
			},
			func(v Version, msg []byte) (x role, err error) {
				x.role, x.generation, err = v.DecodeRoleReply(msg)
				return x, err
			}),
		message("get-async-reply", only13, randomAsync,
			func(v Version, dst []byte, xid uint32, x Async) ([]byte, error) {
				return v.AppendGetAsyncReply(dst, xid, &x)
			}, Version.DecodeGetAsync),
		message("set-async", only13, randomAsync,
			func(v Version, dst []byte, xid uint32, x Async) ([]byte, error) {
				return v.AppendSetAsync(dst, xid, &x)
			}, Version.DecodeSetAsync),
		message("queue-get-config-request", both, port, Version.AppendQueueGetConfigRequest, Version.DecodeQueueGetConfigRequest),
		message("queue-get-config-reply", both, randomQueueConfig,
			func(v Version, dst []byte, xid uint32, x queueConfig) ([]byte, error) {
				return v.AppendQueueGetConfigReply(dst, xid, x.port, x.queues)
			},
			func(v Version, msg []byte) (x queueConfig, err error) {
				x.port, x.queues, err = v.DecodeQueueGetConfigReply(msg)
				return x, err
			}),
		message("multipart-request", both, randomRequest,
			func(v Version, dst []byte, xid uint32, x MultipartRequest) ([]byte, error) {
				return v.AppendMultipartRequest(dst, xid, &x)
			},
			func(v Version, msg []byte) (x MultipartRequest, err error) {
				err = v.DecodeMultipartRequest(msg, &x)
				return x, err
			}),
		multipart("desc", MultipartDesc, both, randomDesc,
			sure(func(v Version, dst []byte, x Desc) []byte { return v.AppendDesc(dst, &x) }), Version.DecodeDesc),
		list("flow-stats", MultipartFlow, both, randomFlowStats, Version.AppendFlowStats, decodeAllFlowStats),
		multipart("aggregate", MultipartAggregate, both,
			func(r *rand.Rand, v Version) Aggregate { return Aggregate{r.Uint64(), r.Uint64(), r.Uint32()} },
			sure(func(v Version, dst []byte, x Aggregate) []byte { return v.AppendAggregate(dst, &x) }), Version.DecodeAggregate),
		list("table-stats", MultipartTable, both, randomTableStats,
			sure(Version.AppendTableStats), Version.DecodeTableStats),
		list("port-stats", MultipartPortStats, both, randomPortStats, Version.AppendPortStats, Version.DecodePortStats),
		list("queue-stats", MultipartQueue, both, randomQueueStats, Version.AppendQueueStats, Version.DecodeQueueStats),
		list("group-stats", MultipartGroup, only13, randomGroupStats, Version.AppendGroupStats, Version.DecodeGroupStats),
		list("group-desc", MultipartGroupDesc, only13, randomGroup, Version.AppendGroupDesc, Version.DecodeGroupDesc),
		multipart("group-features", MultipartGroupFeatures, only13, randomGroupFeatures,
			sure(func(v Version, dst []byte, x GroupFeatures) []byte { return v.AppendGroupFeatures(dst, &x) }), Version.DecodeGroupFeatures),
		list("meter-stats", MultipartMeter, only13, randomMeterStats, Version.AppendMeterStats, Version.DecodeMeterStats),
		list("meter-config", MultipartMeterConfig, only13, randomMeter, Version.AppendMeterConfig, Version.DecodeMeterConfig),
		multipart("meter-features", MultipartMeterFeatures, only13,
			func(r *rand.Rand, v Version) MeterFeatures {
				return MeterFeatures{r.Uint32(), r.Uint32(), r.Uint32(), uint8(r.Uint32()), uint8(r.Uint32())}
			},
			sure(func(v Version, dst []byte, x MeterFeatures) []byte { return v.AppendMeterFeatures(dst, &x) }), Version.DecodeMeterFeatures),
		list("table-features", MultipartTableFeatures, only13, randomTableFeatures, Version.AppendTableFeatures, Version.DecodeTableFeatures),
		list("port-desc", MultipartPortDesc, only13, randomPort, Version.AppendPortDesc, Version.DecodePortDesc),
		multipart("experimenter-multipart", MultipartExperimenter, both, randomExperimenter,
			func(v Version, dst []byte, x Experimenter) ([]byte, error) {
				return v.AppendExperimenterStats(dst, x.ID, x.Type, x.Data)
			},
			func(v Version, body []byte) (x Experimenter, err error) {
				x.ID, x.Type, x.Data, err = v.DecodeExperimenterStats(body)
				return x, err
			}),
	}
}

func decodeAllFlowStats(v Version, body []byte, dst []FlowStats) ([]FlowStats, error) {
	err := v.DecodeFlowStats(body, func(s *FlowStats) error {
		c := *s
		c.Entry = s.Entry.Clone()
		dst = append(dst, c)
		return nil
	})
	return dst, err
}
