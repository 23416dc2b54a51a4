// Package session is the connection of one OpenFlow switch: handshake and role,
// the reader that runs the pipeline for packet-ins, the bounded send queue,
// transaction ids, barriers and answers, ports, and what a process shares
// between its sessions.
//
// Only services/southbound imports it. It decides nothing about several
// sessions together; its Owner does.
package session
