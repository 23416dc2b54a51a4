// Package traffic sends between hosts of a lab and measures what arrives: echo
// requests, packets at times of a schedule with the kernel's stamps, and iperf3.
// Both hosts may be on this machine (Meter), or each on another (Between, Machine).
//
// Package lab imports it, and who reads what was measured.
package traffic
