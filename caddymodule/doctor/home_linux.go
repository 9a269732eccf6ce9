package doctor

import "golang.org/x/sys/unix"

// networkFileSystem names the network file system that a path is on; empty: it is on a local one.
func networkFileSystem(path string) string {
	var s unix.Statfs_t
	if unix.Statfs(path, &s) != nil {
		return ""
	}
	return networkKinds[uint32(s.Type)] //nolint:gosec // the numbers have 32 bits
}

var networkKinds = map[uint32]string{
	unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "SMB", unix.SMB2_SUPER_MAGIC: "SMB",
	unix.V9FS_MAGIC: "9P", unix.AFS_SUPER_MAGIC: "AFS", unix.CEPH_SUPER_MAGIC: "Ceph", unix.CODA_SUPER_MAGIC: "Coda",
}
