package mlxlm

func serveIfTold() {}
