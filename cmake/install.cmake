# make install: library, header, program, pkg-config file and CMake package.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
install(TARGETS sounder_shared sounder_static
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET sounder_mpi)
    install(TARGETS sounder_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/sounder)
endif()
if(TARGET sounder)
    install(TARGETS sounder RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(FILES include/sounder/sounder.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sounder)
# The installed tree may be moved: paths are relative to the files themselves.
file(RELATIVE_PATH PC_UP /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/sounder.pc.in ${CMAKE_BINARY_DIR}/sounder.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/sounder.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
configure_package_config_file(cmake/sounder-config.cmake.in
    ${CMAKE_BINARY_DIR}/sounder-config.cmake
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sounder)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/sounder-config-version.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/sounder-config.cmake ${CMAKE_BINARY_DIR}/sounder-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sounder)
