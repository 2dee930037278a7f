# llvmpipe compiles each shader first, for which emulation takes 5 s.
export GALLIUM_DRIVER=softpipe
